package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/goccy/go-yaml"
)

const (
	formatTable     = "table"
	formatWide      = "wide"
	formatJSON      = "json"
	formatJSONLines = "jsonl"
	formatYAML      = "yaml"
	formatName      = "name"
)

var formats = []string{formatTable, formatWide, formatJSON, formatJSONLines, formatYAML, formatName}

// listing says how a kind of thing is shown.
type listing[T any] struct {
	noun    string // "VMs", for the remark that there are none
	columns []column[T]
	// name is what the next command takes: printed by -o name.
	name func(T) string
}

// column of a table. cell gets the app for ages.
type column[T any] struct {
	head   string
	cell   func(*app, T) string
	isWide bool // only with -o wide
	keep   bool // never shortened: it is pasted into the next command
	state  bool // a state word, may be coloured
	right  bool // numbers
}

// list is the answer of a list, in the API's shape.
type list[T any] struct {
	Items []T `json:"items"`
}

// showMany prints a list.
func showMany[T any](a *app, l listing[T], items []T) error {
	if items == nil {
		items = []T{}
	}
	switch a.global.output {
	case formatJSON:
		return a.printJSON(list[T]{items})
	case formatYAML:
		return a.printYAML(list[T]{items})
	case formatJSONLines:
		return printLines(a, items)
	case formatName:
		return printNames(a, l, items)
	}
	if len(items) == 0 {
		a.note("There are no %s here.", l.noun)
		return nil
	}
	return printTable(a, l, items)
}

// showOne prints one thing; a table of one line for people.
func showOne[T any](a *app, l listing[T], item T) error {
	switch a.global.output {
	case formatJSON:
		return a.printJSON(item)
	case formatYAML:
		return a.printYAML(item)
	case formatJSONLines:
		return printLines(a, []T{item})
	case formatName:
		return printNames(a, l, []T{item})
	}
	return printTable(a, l, []T{item})
}

// showResults prints one thing as itself and several as a list: what a command
// with one or more names answers.
func showResults[T any](a *app, l listing[T], items []T, names int) error {
	if names == 1 && len(items) == 1 {
		return showOne(a, l, items[0])
	}
	if len(items) == 0 {
		return nil
	}
	return showMany(a, l, items)
}

func (a *app) printJSON(v any) error {
	b, err := encodeJSON(v, "  ")
	if err != nil {
		return err
	}
	return a.write(b)
}

func printLines[T any](a *app, items []T) error {
	var all bytes.Buffer
	for _, it := range items {
		b, err := encodeJSON(it, "")
		if err != nil {
			return err
		}
		all.Write(b)
	}
	return a.write(all.Bytes())
}

func encodeJSON(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// printYAML goes by way of JSON, so that both have the same names and values.
func (a *app) printYAML(v any) error {
	b, err := encodeJSON(v, "")
	if err != nil {
		return err
	}
	y, err := yaml.JSONToYAML(b)
	if err != nil {
		return err
	}
	return a.write(y)
}

func printNames[T any](a *app, l listing[T], items []T) error {
	var b bytes.Buffer
	for _, it := range items {
		b.WriteString(l.name(it) + "\n")
	}
	return a.write(b.Bytes())
}

// write sends the result to stdout; a reader that went away (head, less) is no failure.
func (a *app) write(b []byte) error {
	if _, err := a.io.Out.Write(b); err != nil && !isBrokenPipe(err) {
		return &failure{Code: "INTERNAL_ERROR", Reason: "stdout", Message: fmt.Sprintf("the result could not be written: %v", err),
			Hint: "what was asked for may be done all the same: look before doing it again", Cause: err}
	}
	return nil
}

// describe prints lines of name and value, aligned.
func (a *app) describe(w io.Writer, pairs [][2]string) error {
	widest := 0
	for _, p := range pairs {
		widest = max(widest, displayWidth(p[0]))
	}
	var b bytes.Buffer
	for _, p := range pairs {
		if p[1] == "" {
			continue
		}
		fmt.Fprintf(&b, "%-*s  %s\n", widest+1, p[0]+":", printable(p[1]))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// when is a time: an age in a table, RFC 3339 in wide and everywhere else.
func (a *app) when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	if a.global.output == formatWide {
		return t.UTC().Format(time.RFC3339)
	}
	return age(a.clock.Now().Sub(t))
}
