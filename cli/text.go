package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

func compareStrings(a, b string) int { return cmp.Compare(a, b) }

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// printable replaces what would move a cursor or change a terminal: text of a
// server or a tenant never controls the reader's screen.
func printable(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case isControl(r):
			fmt.Fprintf(&b, "\\x%02x", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isControl(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// displayWidth is how many cells of a terminal s takes.
func displayWidth(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// shorten cuts the middle out of s, so that it takes at most limit cells.
func shorten(s string, limit int) string {
	if displayWidth(s) <= limit {
		return s
	}
	if limit <= 1 {
		return "…"
	}
	runes := []rune(s)
	headRoom, tailRoom := limit/2, limit-1-limit/2
	head, tail := 0, len(runes)
	for w := 0; head < len(runes); head++ {
		if w += runeWidth(runes[head]); w > headRoom {
			break
		}
	}
	for w := 0; tail > head; tail-- {
		if w += runeWidth(runes[tail-1]); w > tailRoom {
			break
		}
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// shellQuote quotes s for a POSIX shell if it must be.
func shellQuote(s string) string {
	isSafe := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.,:/@=+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !isSafe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// age is how long ago something was, in its two coarsest useful units.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
