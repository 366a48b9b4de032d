package cli

import (
	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

var auditListing = listing[hcp.AuditRecord]{
	noun: "audit records", name: func(r hcp.AuditRecord) string { return string(r.ID) },
	columns: []column[hcp.AuditRecord]{
		{head: "TIME", keep: true, cell: func(_ *app, r hcp.AuditRecord) string { return rfc3339(r.Time) }},
		{head: "KIND", cell: func(_ *app, r hcp.AuditRecord) string { return string(r.Kind) }},
		{head: "ACTION", cell: func(_ *app, r hcp.AuditRecord) string { return r.Action }},
		{head: "RESULT", state: true, cell: func(_ *app, r hcp.AuditRecord) string { return r.Result }},
		{head: "ACTOR", cell: func(_ *app, r hcp.AuditRecord) string { return r.Actor }},
		{head: "TARGET", cell: func(_ *app, r hcp.AuditRecord) string { return r.Target }},
		{head: "REQUEST", isWide: true, keep: true, cell: func(_ *app, r hcp.AuditRecord) string { return string(r.RequestID) }},
		{head: "SOURCE", isWide: true, cell: func(_ *app, r hcp.AuditRecord) string { return r.Source }},
		{head: "JOB", isWide: true, keep: true, cell: func(_ *app, r hcp.AuditRecord) string { return string(r.Job) }},
		{head: "TRACE", isWide: true, keep: true, cell: func(_ *app, r hcp.AuditRecord) string { return r.TraceID }},
	},
}

func (a *app) auditCommands() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List who did what, newest first", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"the last 100 of the project", "audit list"}, example{"one call with all that came of it", "audit list --request req_0193a5b2c4d87e0f9a1b2c3d4e5f6071 -o json"},
			example{"every delete", "audit list --action vm.delete --limit 0"}),
	}
	var l client.ListAudit
	cmd.Flags().StringVar(&l.Actor, "actor", "", "only of this subject")
	cmd.Flags().StringVar(&l.Action, "action", "", "only this action, for example vm.create")
	cmd.Flags().StringVar(&l.RequestID, "request", "", "only of this request")
	kind := cmd.Flags().String("kind", "", "call, job_started, job_succeeded or job_failed")
	limit := cmd.Flags().Int("limit", 100, "at most so many (0: all)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *limit < 0 {
			return usage("invalid_flag", "--limit is 0 (all) or more")
		}
		l.Kind, l.PageSize = hcp.AuditKind(*kind), pageSize(*limit)
		isOps, err := a.isOps()
		if err != nil {
			return err
		}
		var next func(token string) (v1.Page[hcp.AuditRecord], error)
		if isOps {
			o, err := a.ops()
			if err != nil {
				return err
			}
			l.Project = a.known.project
			next = func(token string) (v1.Page[hcp.AuditRecord], error) {
				l.PageToken = token
				return o.ListAudit(cmd.Context(), l)
			}
		} else {
			p, err := a.project()
			if err != nil {
				return err
			}
			next = func(token string) (v1.Page[hcp.AuditRecord], error) {
				l.PageToken = token
				return p.ListAudit(cmd.Context(), l)
			}
		}
		items, err := collect(client.All(next), *limit)
		if err != nil {
			return a.about("audit", "", "list").failed(err)
		}
		return showMany(a, auditListing, items)
	}
	return a.group("audit", "Who did what", cmd)
}
