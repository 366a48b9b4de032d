package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

var bindingListing = listing[hcp.RoleBinding]{
	noun: "role bindings", name: func(b hcp.RoleBinding) string { return b.ID },
	columns: []column[hcp.RoleBinding]{
		{head: "ID", keep: true, cell: func(_ *app, b hcp.RoleBinding) string { return b.ID }},
		{head: "SUBJECT", keep: true, cell: func(_ *app, b hcp.RoleBinding) string { return b.Subject }},
		{head: "ROLE", keep: true, cell: func(_ *app, b hcp.RoleBinding) string { return b.Role }},
		{head: "SCOPE", cell: func(_ *app, b hcp.RoleBinding) string { return string(b.Scope) }},
		{head: "PROJECT", cell: func(_ *app, b hcp.RoleBinding) string { return string(b.Project) }},
		{head: "ORG", cell: func(_ *app, b hcp.RoleBinding) string { return string(b.Org) }},
	},
}

func (a *app) bindingCommands() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List role bindings", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"who may what", "role-binding list"}, example{"of one subject", "role-binding list --subject demo-user"}),
	}
	subject := list.Flags().String("subject", "", "only of this subject")
	list.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := a.ops()
		if err != nil {
			return err
		}
		page, err := o.ListBindings(cmd.Context(), *subject)
		return listPage(a, "role-binding", bindingListing, page, err)
	}
	return a.group("role-binding", "Who may do what, and where (operators)", list, a.bindingCreate(),
		a.deleteCommand("role-binding", "Take roles away", "The subject loses the role within two seconds.", nil,
			func(ctx context.Context, o *client.Ops, id string, key client.CallOption) error {
				return o.DeleteBinding(ctx, id, key)
			},
			example{"ask first", "role-binding delete rb_1"}, example{"in a script", "role-binding delete rb_1 --yes"}))
}

func (a *app) bindingCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create SUBJECT ROLE", Short: "Give a subject a role in a project, an organisation, or as an operator", Args: a.wantArgs(2, 2, "subject and the role"),
		Example: examples(example{"in one project", "role-binding create alice project-operator --in-project demo"},
			example{"in every project of an organisation", "role-binding create alice project-viewer --in-org acme"},
			example{"as an operator", "role-binding create bob cloud-operator"}),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			if len(args) != 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.complete(cmd, a.roleNames, nil, prefix)
		},
	}
	var in v1.CreateBinding
	// --project is where a tenant's command goes; the target of a binding has a name of its own.
	cmd.Flags().StringVar(&in.Project, "in-project", "", "project, by name, id or LRN")
	cmd.Flags().StringVar(&in.Org, "in-org", "", "organisation, by name, id or LRN")
	a.completeFlag(cmd, "in-project", a.projectNames)
	a.completeFlag(cmd, "in-org", a.orgNames)
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in.Subject, in.Role = args[0], args[1]
		if in.Project != "" && in.Org != "" {
			return usage("invalid_flag", "--in-project and --in-org exclude each other")
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		b, err := o.CreateBinding(cmd.Context(), in, client.WithKey(key))
		return changed(a, "role-binding", in.Subject, "create", key, bindingListing, b, err)
	}
	return cmd
}

var roleListing = listing[v1.Role]{
	noun: "roles", name: func(r v1.Role) string { return r.Name },
	columns: []column[v1.Role]{
		{head: "NAME", keep: true, cell: func(_ *app, r v1.Role) string { return r.Name }},
		{head: "SCOPE", cell: func(_ *app, r v1.Role) string { return string(r.Scope) }},
		{head: "ACTIONS", right: true, cell: func(_ *app, r v1.Role) string { return strconv.Itoa(len(r.Actions)) }},
		{head: "ALLOWS", isWide: true, cell: func(_ *app, r v1.Role) string { return strings.Join(r.Actions, ",") }},
	},
}

func (a *app) roleNames(ctx context.Context, _ string) ([]string, error) {
	return opsWords(ctx, a, (*client.Ops).ListRoles, roleListing)
}

func (a *app) roleCommands() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the built-in roles", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"all", "role list"}, example{"with every action", "role list -o yaml"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.ops()
			if err != nil {
				return err
			}
			page, err := o.ListRoles(cmd.Context())
			return listPage(a, "role", roleListing, page, err)
		},
	}
	return a.group("role", "Sets of actions (operators)", list)
}
