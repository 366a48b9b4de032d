package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp/api/client"
	v1 "github.com/lotuscloud/hcp/api/v1"
)

var orgListing = listing[v1.Org]{
	noun: "organisations", name: func(o v1.Org) string { return o.Name },
	columns: []column[v1.Org]{
		{head: "NAME", keep: true, cell: func(_ *app, o v1.Org) string { return o.Name }},
		{head: "ID", keep: true, cell: func(_ *app, o v1.Org) string { return string(o.ID) }},
		{head: "AGE", keep: true, cell: func(a *app, o v1.Org) string { return a.when(o.CreatedAt) }},
	},
}

func (a *app) orgCommands() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List organisations", Args: a.wantArgs(0, 0, ""),
		Example: examples(example{"all", "org list"}, example{"as JSON", "org list -o json"}),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := a.ops()
			if err != nil {
				return err
			}
			page, err := o.ListOrgs(cmd.Context())
			return listPage(a, "org", orgListing, page, err)
		},
	}
	create := &cobra.Command{
		Use: "create NAME", Short: "Create an organisation", Args: a.wantArgs(1, 1, "name of the organisation"),
		Example:           examples(example{"one", "org create acme"}, example{"its id alone", "org create acme -o json"}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flag := keyFlag(create)
	create.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		v, err := o.CreateOrg(cmd.Context(), v1.CreateOrg{Name: args[0]}, client.WithKey(key))
		return changed(a, "org", args[0], "create", key, orgListing, v, err)
	}
	get := func(ctx context.Context, name string) (v1.Org, error) {
		o, err := a.ops()
		if err != nil {
			return v1.Org{}, err
		}
		return o.GetOrg(ctx, name)
	}
	return a.group("org", "Organisations: who owns projects (operators)", list,
		getCommand(a, "org", "Show organisations", orgListing, a.orgNames, get, example{"by name", "org get acme"}, example{"as JSON", "org get acme -o json"}),
		create,
		a.deleteCommand("org", "Delete organisations; one with projects is refused", "", a.orgNames,
			func(ctx context.Context, o *client.Ops, name string, key client.CallOption) error {
				return o.DeleteOrg(ctx, name, key)
			},
			example{"ask first", "org delete acme"}, example{"in a script", "org delete acme --yes"}))
}

var projectListing = listing[v1.Project]{
	noun: "projects", name: func(p v1.Project) string { return p.Name },
	columns: []column[v1.Project]{
		{head: "NAME", keep: true, cell: func(_ *app, p v1.Project) string { return p.Name }},
		{head: "ID", keep: true, cell: func(_ *app, p v1.Project) string { return string(p.ID) }},
		{head: "ORG", cell: func(_ *app, p v1.Project) string { return string(p.Org) }},
		{head: "AGE", keep: true, cell: func(a *app, p v1.Project) string { return a.when(p.CreatedAt) }},
	},
}

func (a *app) projectCommands() *cobra.Command {
	get := func(ctx context.Context, name string) (v1.Project, error) {
		o, err := a.ops()
		if err != nil {
			return v1.Project{}, err
		}
		return o.GetProject(ctx, name)
	}
	return a.group("project", "Projects: where virtual machines live (operators)", a.projectList(),
		getCommand(a, "project", "Show projects", projectListing, a.projectNames, get,
			example{"by name", "project get demo"}, example{"as JSON", "project get demo -o json"}),
		a.projectCreate(),
		a.deleteCommand("project", "Delete projects; one with VMs is refused", "", a.projectNames,
			func(ctx context.Context, o *client.Ops, name string, key client.CallOption) error {
				return o.DeleteProject(ctx, name, key)
			},
			example{"ask first", "project delete demo"}, example{"in a script", "project delete demo --yes"}))
}

func (a *app) projectList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List projects", Args: a.wantArgs(0, 0, ""),
		Long:    "List projects: all of them with an operator's token, else those that the token may reach.",
		Example: examples(example{"all", "project list"}, example{"of one organisation", "project list --org acme"}),
	}
	org := cmd.Flags().String("org", "", "only of this organisation (operators)")
	a.completeFlag(cmd, "org", a.orgNames)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		isOps, err := a.isOps()
		if err != nil {
			return err
		}
		if isOps {
			o, err := a.ops()
			if err != nil {
				return err
			}
			page, err := o.ListProjects(cmd.Context(), *org)
			return listPage(a, "project", projectListing, page, err)
		}
		me, err := a.me(cmd.Context())
		if err != nil {
			return a.about("project", "", "list").failed(err)
		}
		return showMany(a, accessListing, me.Projects)
	}
	return cmd
}

// accessListing shows the projects a tenant's token reaches.
var accessListing = listing[v1.ProjectAccess]{
	noun: "projects", name: func(p v1.ProjectAccess) string { return p.Name },
	columns: []column[v1.ProjectAccess]{
		{head: "NAME", keep: true, cell: func(_ *app, p v1.ProjectAccess) string { return p.Name }},
		{head: "ID", keep: true, cell: func(_ *app, p v1.ProjectAccess) string { return string(p.ID) }},
		{head: "ROLES", cell: func(_ *app, p v1.ProjectAccess) string { return joinWords(p.Roles) }},
		{head: "ORG", isWide: true, cell: func(_ *app, p v1.ProjectAccess) string { return string(p.Org) }},
		{head: "ACTIONS", isWide: true, cell: func(_ *app, p v1.ProjectAccess) string { return joinWords(p.Actions) }},
	},
}

func (a *app) projectCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a project", Args: a.wantArgs(1, 1, "name of the project"),
		Example: examples(example{"in an organisation", "project create shop --org acme"}, example{"as JSON", "project create shop --org acme -o json"}),

		ValidArgsFunction: cobra.NoFileCompletions,
	}
	org := cmd.Flags().String("org", "", "organisation, by name, id or LRN (needed)")
	a.completeFlag(cmd, "org", a.orgNames)
	flag := keyFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *org == "" {
			return usage("missing_flag", "hcpctl project create needs --org").withTry(a.commandLine("org", "list"))
		}
		o, err := a.ops()
		if err != nil {
			return err
		}
		key := a.key(flag)
		v, err := o.CreateProject(cmd.Context(), v1.CreateProject{Name: args[0], Org: *org}, client.WithKey(key))
		return changed(a, "project", args[0], "create", key, projectListing, v, err)
	}
	return cmd
}
