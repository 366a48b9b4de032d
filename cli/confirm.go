package cli

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/lotuscloud/hcp"
	"github.com/spf13/cobra"
)

// confirmFlag adds --yes to a destructive command.
func confirmFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().BoolP("yes", "y", false, "do not ask")
}

// confirm asks before a destructive verb: what, where, and what goes too. On
// anything but a plain yes nothing is done. Without a terminal there is nobody
// to ask: --yes is needed.
func (a *app) confirm(yes bool, verb string, names []string, noun, consequence string) error {
	if yes {
		return nil
	}
	again := "hcpctl " + verb // the words as given; flags and names follow
	if !a.term.in {
		return usage("confirmation_needed", "%s needs a confirmation and there is no terminal to ask on; nothing was done", again).
			withTry(a.commandLine(append(append(strings.Fields(verb), names...), "--yes")...))
	}
	where := ""
	if t := a.known; t != nil {
		where = " on " + t.server
		if t.project != "" && noun == "VM" {
			where = " in project " + t.project + where
		}
		if t.context != "" {
			where += " (context " + t.context + ")"
		}
	}
	fmt.Fprintf(a.io.Err, "%s %s %s%s?\n", again, noun, printable(strings.Join(names, ", ")), printable(where))
	if consequence != "" {
		fmt.Fprintln(a.io.Err, consequence)
	}
	fmt.Fprint(a.io.Err, "Type yes to go on: ")
	line, err := bufio.NewReader(a.io.In).ReadString('\n')
	if isCancelled(err) {
		return &failure{Code: codeInterrupted, Message: "interrupted at the question; nothing was done", Hint: "answer yes, or give --yes"}
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	}
	return &failure{Code: hcp.CodeInvalidRequest, Reason: "confirmation_refused", Exit: hcp.ExitUsage,
		Message: "not confirmed; nothing was done", Hint: "answer yes, or give --yes"}
}
