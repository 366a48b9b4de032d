package cli

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// terminal is what the run knows of the streams it writes to.
type terminal struct {
	in, out, err bool // is a terminal
	width        int  // of stdout or stderr; 0 when neither is a terminal
	dumb         bool // no cursor movement
	noColor      bool
	forceColor   bool
}

const defaultWidth = 80

func detectTerminal(stdio Stdio, env environment) terminal {
	t := terminal{in: isTerminal(stdio.In), out: isTerminal(stdio.Out), err: isTerminal(stdio.Err)}
	t.dumb = env["TERM"] == "dumb" || env["TERM"] == ""
	t.noColor = env["NO_COLOR"] != "" || env["CLICOLOR"] == "0"
	t.forceColor = env["CLICOLOR_FORCE"] != "" && env["CLICOLOR_FORCE"] != "0"
	if t.out || t.err {
		t.width = terminalWidth(stdio, env)
	}
	return t
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func terminalWidth(stdio Stdio, env environment) int {
	if n, err := strconv.Atoi(env["COLUMNS"]); err == nil && n > 0 {
		return n
	}
	for _, stream := range []any{stdio.Out, stdio.Err} {
		if f, ok := stream.(*os.File); ok {
			if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
				return w
			}
		}
	}
	return defaultWidth
}

// colour of a word on a terminal. The word itself always says the same: nobody
// needs the colour to understand.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	faint  colour = "2"
)

func (c colour) paint(s string, on bool) string {
	if !on || c == plain || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// wordColour paints state words; the terminal's own 16 colours only.
func wordColour(word string) colour {
	first, _, _ := strings.Cut(word, " ")
	switch first {
	case "running", "succeeded", "active", "reachable", "ok":
		return green
	case "error", "failed", "unreachable", "needs_attention", "no":
		return red
	case "unknown", "waiting", "cancelling", "cancelled", "deprecated", "maintenance":
		return yellow
	case "creating", "starting", "stopping", "restarting", "deleting", "queued":
		return bold
	case "stopped", "deleted", "retired":
		return faint
	}
	return plain
}
