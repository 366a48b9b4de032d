package cli

import "github.com/spf13/cobra"

func (a *app) simCommands() *cobra.Command {
	return a.group("sim", "The simulated hypervisor: faults to rehearse")
}
