package cli

import (
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) systemCommands() *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Show the control plane at a glance: nodes, open jobs, clusters", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"is all well", "system status"}, example{"for a script", "system status -o json"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.ops()
			if err != nil {
				return err
			}
			s, err := o.Status(cmd.Context())
			if err != nil {
				return a.about("", "", "").failed(err)
			}
			l := listing[v1.SystemStatus]{noun: "systems", name: func(s v1.SystemStatus) string { return s.Generation }}
			return showDetails(a, l, s, systemDetails(a, s))
		},
	}
	return a.group("system", "The control plane itself (operators)", status)
}

func systemDetails(a *app, s v1.SystemStatus) [][2]string {
	d := [][2]string{{"Version", s.Version}, {"Generation", s.Generation}}
	for _, n := range s.Nodes {
		state := "joined " + age(a.clock.Now().Sub(n.JoinedAt)) + " ago"
		if n.Gone {
			state = "gone"
		}
		d = append(d, [2]string{"Node", n.Node + " " + n.Version + ", " + state})
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Jobs)) {
		for _, state := range slices.Sorted(maps.Keys(s.Jobs[kind])) {
			d = append(d, [2]string{"Jobs", string(kind) + " " + string(state) + " " + strconv.Itoa(s.Jobs[kind][state])})
		}
	}
	for _, c := range slices.Sorted(maps.Keys(s.Clusters)) {
		r := s.Clusters[c]
		text := reachText(r)
		if !r.Reachable {
			text += ", last good " + orDash(rfc3339(r.LastGoodAt))
		}
		d = append(d, [2]string{"Cluster", string(c) + " " + text})
	}
	return d
}
