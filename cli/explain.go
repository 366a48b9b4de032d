package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lotuscloud/hcp"
)

// codeView is a code of the catalogue as `explain error` shows it.
type codeView struct {
	Code      hcp.Code     `json:"code"`
	Title     string       `json:"title"`
	Hint      string       `json:"hint"`
	Status    int          `json:"status,omitempty"`
	Retryable bool         `json:"retryable"`
	Audience  hcp.Audience `json:"audience"`
	ExitCode  int          `json:"exit_code"`
}

func viewOfCode(e hcp.CatalogueEntry) codeView {
	return codeView{e.Code, e.Title, e.Hint, e.Status, e.Retryable, e.Audience, e.Exit}
}

var codeListing = listing[codeView]{
	noun: "codes", name: func(c codeView) string { return string(c.Code) },
	columns: []column[codeView]{
		{head: "CODE", keep: true, cell: func(_ *app, c codeView) string { return string(c.Code) }},
		{head: "EXIT", right: true, keep: true, cell: func(_ *app, c codeView) string { return strconv.Itoa(c.ExitCode) }},
		{head: "HTTP", right: true, keep: true, cell: func(_ *app, c codeView) string {
			if c.Status == 0 {
				return ""
			}
			return strconv.Itoa(c.Status)
		}},
		{head: "MEANING", cell: func(_ *app, c codeView) string { return c.Title }},
		{head: "RETRYABLE", isWide: true, cell: func(_ *app, c codeView) string { return yesNo(c.Retryable) }},
		{head: "HINT", isWide: true, cell: func(_ *app, c codeView) string { return c.Hint }},
	},
}

func (a *app) explainCommands() *cobra.Command {
	return a.group("explain", "What an error code means", a.explainError())
}

func (a *app) explainError() *cobra.Command {
	return &cobra.Command{
		Use: "error [CODE]", Short: "Explain an error code, or list all; asks no server", Args: a.wantArgs(0, 1, "code"),
		Example: examples(example{"one code", "explain error NO_CAPACITY"}, example{"all of them with their exit codes", "explain error -o wide"}),
		ValidArgsFunction: a.completeOne(func(context.Context, string) ([]string, error) {
			return wordsOf(allCodes(), nil, func(c codeView) (string, string) { return string(c.Code), c.Title })
		}),
		RunE: func(_ *cobra.Command, args []string) error {
			codes := allCodes()
			if len(args) == 0 {
				return showMany(a, codeListing, codes)
			}
			want := hcp.Code(strings.ToUpper(strings.ReplaceAll(args[0], "-", "_")))
			var names []string
			for _, c := range codes {
				if c.Code == want {
					return showDetails(a, codeListing, c, codeDetails(c))
				}
				names = append(names, string(c.Code))
			}
			f := &failure{Code: hcp.CodeNotFound, Reason: "no_code", Message: "there is no error code " + string(want), Try: "hcpctl explain error"}
			if near := suggestWord(string(want), names); near != "" {
				f.Message += "; did you mean " + near + "?"
				f.Try += " " + near
			}
			return f
		},
	}
}

func allCodes() []codeView {
	var codes []codeView
	for _, e := range append(hcp.Catalogue(), localCatalogue...) {
		codes = append(codes, viewOfCode(e))
	}
	return codes
}

func codeDetails(c codeView) [][2]string {
	who := "you"
	if c.Audience == hcp.AudienceOperator {
		who = "the operator"
	}
	d := [][2]string{{"Code", string(c.Code)}, {"Meaning", c.Title}, {"What to do", c.Hint}, {"Who can act", who},
		{"Worth a retry", yesNo(c.Retryable)}, {"Exit code", strconv.Itoa(c.ExitCode)}}
	if c.Status != 0 {
		d = append(d, [2]string{"HTTP status", strconv.Itoa(c.Status)})
	}
	return d
}
