package cli

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

func (a *app) queryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "query PATH", Short: "Send a GET to the API and print the answer as it came", Args: a.wantArgs(1, 1, "path"),
		Long: "Send a GET to the API, with your token, and print the answer. {project} in the path stands for the chosen project.",
		Example: examples(example{"what no command shows", "query /v1/whoami"},
			example{"of the chosen project", "query '/v1/projects/{project}/vms?page_size=5'"},
			example{"the API's own description", "query /openapi.json"}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path := args[0]
		t, err := a.signedIn()
		if err != nil {
			return err
		}
		if strings.Contains(path, "{project}") {
			if t, err = a.inProject(); err != nil {
				return err
			}
			path = strings.ReplaceAll(path, "{project}", url.PathEscape(t.project))
		}
		if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsFunc(path, isControl) || strings.Contains(path, " ") {
			return usage("invalid_argument", "the path begins with one / and is escaped, for example /v1/whoami, not %q", args[0])
		}
		c, err := a.connect(t)
		if err != nil {
			return err
		}
		body, _, err := c.Raw(cmd.Context(), path)
		if err != nil {
			return a.about("", "", "").failed(err)
		}
		return a.printRaw(body)
	}
	return cmd
}

// printRaw prints what is JSON in the asked form, and any other body as it is.
func (a *app) printRaw(body []byte) error {
	if !json.Valid(body) {
		if a.global.output == formatJSON || a.global.output == formatJSONLines {
			return &failure{Code: "INTERNAL_ERROR", Reason: reasonBadAnswer, Message: "the answer is not JSON", Try: a.commandLine("query", "/v1/version")}
		}
		return a.write(body)
	}
	if a.global.output == formatYAML {
		y, err := yaml.JSONToYAML(body)
		if err != nil {
			return err
		}
		return a.write(y)
	}
	var indented strings.Builder
	enc := json.NewEncoder(&indented)
	enc.SetEscapeHTML(false)
	if a.global.output != formatJSONLines {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(json.RawMessage(body)); err != nil {
		return err
	}
	return a.write([]byte(indented.String()))
}
