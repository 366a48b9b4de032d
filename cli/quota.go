package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

func (a *app) quotaCommands() *cobra.Command {
	return a.group("quota", "How much may be used, and is", a.quotaGet(), a.quotaSet(), a.quotaVerify())
}

// quotaRow is one line of one counter.
type quotaRow struct {
	subject v1.QuotaSubject
	line    hcp.QuotaLine
}

var quotaListing = listing[quotaRow]{
	noun: "quotas", name: func(r quotaRow) string { return r.subject.ID },
	columns: []column[quotaRow]{
		{head: "SCOPE", keep: true, cell: func(_ *app, r quotaRow) string { return string(r.subject.Scope) }},
		{head: "RESOURCE", keep: true, cell: func(_ *app, r quotaRow) string { return string(r.line.Resource) }},
		{head: "USED", right: true, keep: true, cell: func(_ *app, r quotaRow) string { return strconv.FormatInt(r.line.Used, 10) }},
		{head: "LIMIT", right: true, keep: true, cell: func(_ *app, r quotaRow) string { return r.line.Limit.String() }},
		{head: "SUBJECT", cell: func(_ *app, r quotaRow) string { return r.subject.ID }},
	},
}

// showQuota prints the API's document, or one line per resource for people.
func showQuota(a *app, document any, subjects []v1.QuotaSubject) error {
	switch a.global.output {
	case formatJSON:
		return a.printJSON(document)
	case formatYAML:
		return a.printYAML(document)
	case formatJSONLines:
		return printLines(a, subjects)
	}
	var rows []quotaRow
	for _, s := range subjects {
		if a.global.output == formatName {
			rows = append(rows, quotaRow{subject: s})
			continue
		}
		for _, line := range s.Lines {
			rows = append(rows, quotaRow{s, line})
		}
	}
	return showMany(a, quotaListing, rows)
}

var quotaScopes = []hcp.QuotaScope{hcp.QuotaOrg, hcp.QuotaProject, hcp.QuotaUser}

func (a *app) quotaGet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get [SCOPE SUBJECT]", Aliases: []string{"show", "list"}, Short: "Show limits and use", Args: a.wantArgs(0, 2, "scope and the subject"),
		Long: "Show the limits and the use of the project: of its organisation, of itself, and of the caller in it. Operators name a scope " +
			"(org, project or user) and a subject (a user as project/subject).",
		Example:           examples(example{"of the project", "quota get"}, example{"of an organisation (operators)", "quota get org acme -o json"}),
		ValidArgsFunction: a.completeQuota,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			scope, id, err := quotaSubject(args)
			if err != nil {
				return err
			}
			o, err := a.ops()
			if err != nil {
				return err
			}
			s, err := o.GetQuota(cmd.Context(), scope, id)
			if err != nil {
				return a.about(string(scope), id, "").failed(err)
			}
			return showQuota(a, s, []v1.QuotaSubject{s})
		}
		p, err := a.project()
		if err != nil {
			return err
		}
		q, err := p.Quota(cmd.Context())
		if err != nil {
			return a.about("quota", "", "get").failed(err)
		}
		return showQuota(a, q, q.Subjects)
	}
	return cmd
}

func quotaSubject(args []string) (hcp.QuotaScope, string, error) {
	scope := hcp.QuotaScope(args[0])
	switch {
	case !slices.Contains(quotaScopes, scope):
		return "", "", usage("invalid_argument", "there is no quota scope %q; the scopes are %s", args[0], joinWords(quotaScopes))
	case len(args) < 2:
		return "", "", usage("missing_argument", "the subject is missing: the %s by name or id", scope)
	}
	return scope, args[1], nil
}

func (a *app) quotaSet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set SCOPE SUBJECT", Short: "Set limits (operators)", Args: a.wantArgs(2, 2, "scope and the subject"),
		Long: "Set the limits that are given; the others stay. A limit is a whole number, 0 is none at all, unlimited is a word.",
		Example: examples(example{"of a project", "quota set project demo --vms 20 --vcpus 40 --memory-mib 81920"},
			example{"no limit for an organisation", "quota set org acme --vms unlimited"}),
		ValidArgsFunction: a.completeQuota,
	}
	flags := map[hcp.Resource]*string{}
	for _, r := range hcp.QuotaResources() {
		flags[r] = cmd.Flags().String(strings.ReplaceAll(string(r), "_", "-"), "", "limit of "+string(r)+", a number or unlimited")
	}
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		scope, id, err := quotaSubject(args)
		if err != nil {
			return err
		}
		in := v1.SetQuota{Limits: map[hcp.Resource]hcp.Limit{}}
		for _, r := range hcp.QuotaResources() {
			if *flags[r] == "" {
				continue
			}
			if in.Limits[r], err = parseLimit(*flags[r]); err != nil {
				return err
			}
		}
		if len(in.Limits) == 0 {
			return usage("missing_flag", "no limit is given: --vms, --vcpus or --memory-mib")
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		s, err := o.SetQuota(cmd.Context(), scope, id, in, client.WithKey(key))
		if err != nil {
			return a.about(string(scope), id, "").withKey(key).failed(err)
		}
		return showQuota(a, s, []v1.QuotaSubject{s})
	}
	return cmd
}

func parseLimit(s string) (hcp.Limit, error) {
	if s == "unlimited" {
		return hcp.NoLimit(), nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return hcp.Limit{}, usage("invalid_flag", "a limit is a whole number from 0 up, or unlimited, not %q", s)
	}
	return hcp.LimitOf(n), nil
}

func (a *app) completeQuota(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return strings.Split(joinWords(quotaScopes), ", "), cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && args[0] == string(hcp.QuotaOrg):
		return a.complete(cmd, a.orgNames, nil, prefix)
	case len(args) == 1 && args[0] == string(hcp.QuotaProject):
		return a.complete(cmd, a.projectNames, nil, prefix)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) quotaVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Compare the counters with what live VMs add up to; exits 1 when they differ", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"of the project", "quota verify"}, example{"as JSON", "quota verify -o json"}),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.verifyQuota(cmd.Context()) },
	}
}

var driftListing = listing[v1.QuotaDifference]{
	noun: "differences", name: func(d v1.QuotaDifference) string { return d.ID },
	columns: []column[v1.QuotaDifference]{
		{head: "SCOPE", keep: true, cell: func(_ *app, d v1.QuotaDifference) string { return string(d.Scope) }},
		{head: "SUBJECT", keep: true, cell: func(_ *app, d v1.QuotaDifference) string { return d.ID }},
		{head: "RESOURCE", cell: func(_ *app, d v1.QuotaDifference) string { return string(d.Resource) }},
		{head: "COUNTER", right: true, cell: func(_ *app, d v1.QuotaDifference) string { return strconv.FormatInt(d.Counter, 10) }},
		{head: "DERIVED", right: true, cell: func(_ *app, d v1.QuotaDifference) string { return strconv.FormatInt(d.Derived, 10) }},
	},
}

func (a *app) verifyQuota(ctx context.Context) error {
	p, err := a.project()
	if err != nil {
		return err
	}
	q, err := p.VerifyQuota(ctx)
	if err != nil {
		return a.about("quota", "", "verify").failed(err)
	}
	if q.Drift != 0 {
		f := &failure{Code: hcp.CodeVerificationFailed, Reason: "quota_drift", Exit: hcp.ExitFailed, Details: map[string]any{"drift": q.Drift, "differences": q.Differences},
			Message: "the quota counters differ from the live VMs in " + strconv.Itoa(q.Drift) + " places", Try: a.commandLine("quota", "get")}
		if a.global.output != formatJSON && a.global.output != formatYAML && a.global.output != formatJSONLines {
			if err := showMany(a, driftListing, q.Differences); err != nil {
				return err
			}
		}
		return f
	}
	switch a.global.output {
	case formatJSON, formatJSONLines:
		return a.printJSON(q)
	case formatYAML:
		return a.printYAML(q)
	}
	return a.write([]byte("drift 0\n"))
}
