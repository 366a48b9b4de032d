package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp/drivers/sim/simapi"
)

func (a *app) simStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show every fault that is set and what is at work", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"what did I break", "sim status"}, example{"as JSON", "sim status -o json"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.simClient()
			if err != nil {
				return err
			}
			s, err := c.Status(cmd.Context())
			if err != nil {
				return a.simFailed(err)
			}
			l := listing[simapi.StatusAnswer]{noun: "states", name: func(s simapi.StatusAnswer) string { return simState(s) }}
			return showDetails(a, l, s, simDetails(s))
		},
	}
}

func simState(s simapi.StatusAnswer) string {
	if s.Down != "" {
		return "down (" + s.Down + ")"
	}
	return "up"
}

func simDetails(s simapi.StatusAnswer) [][2]string {
	d := [][2]string{{"State", simState(s)}, {"Boot", strconv.Itoa(s.BootMS) + " ms"}}
	for _, op := range slices.Sorted(maps.Keys(s.Faults)) {
		b, err := json.Marshal(s.Faults[op])
		if err == nil && string(b) != "{}" {
			d = append(d, [2]string{"Fault", string(op) + " " + string(b)})
		}
	}
	for _, t := range s.Running {
		d = append(d, [2]string{"At work", t.ID + " " + string(t.Op) + " " + t.Machine})
	}
	for _, h := range s.Hosts {
		state := "up"
		if h.Down {
			state = "down"
		}
		d = append(d, [2]string{"Host", h.Name + " " + state + ", " + strconv.FormatInt(h.Used.MemoryMiB, 10) + "/" + strconv.FormatInt(h.MemoryMiB, 10) +
			" MiB, " + strconv.FormatInt(h.Used.DiskGiB, 10) + "/" + strconv.FormatInt(h.DiskGiB, 10) + " GiB used"})
	}
	return d
}
