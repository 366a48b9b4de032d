package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
)

// exitMeanings documents the exit codes once; help, man page and tests read it.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{hcp.ExitOK, "done"},
	{hcp.ExitFailed, "failed for another reason than those below"},
	{hcp.ExitUsage, "wrong usage, an invalid request, or a confirmation that was refused; nothing was done"},
	{hcp.ExitNotFound, "there is no such thing"},
	{hcp.ExitNotAllowed, "not signed in, or not allowed"},
	{hcp.ExitConflict, "conflict with the present state, or a precondition that no longer holds"},
	{hcp.ExitJobFailed, "the job failed or was cancelled"},
	{hcp.ExitWaitTimeout, "the wait timed out; the job goes on"},
	{hcp.ExitNeedsAttention, "the job needs attention: something is left over that HCP could not undo"},
	{hcp.ExitPartial, "some of many failed"},
	{hcp.ExitRefused, "refused by capability, capacity, policy or quota"},
	{hcp.ExitUnavailable, "the server or the hypervisor is unavailable; try again later"},
	{hcp.ExitInterrupted, "interrupted; a job that was waited for goes on"},
}

func exitCodesText() string {
	var b strings.Builder
	b.WriteString("hcpctl ends with one of these codes. They are part of the contract with scripts.\n\n")
	for _, e := range exitMeanings {
		fmt.Fprintf(&b, "  %3d  %s\n", e.code, e.meaning)
	}
	b.WriteString("\nThe code of every error of the server is shown by: hcpctl explain error CODE")
	return b.String()
}

// exitCodesTopic is `hcpctl help exit-codes`.
func (a *app) exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "The exit codes of hcpctl", Long: exitCodesText()}
}
