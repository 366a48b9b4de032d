package libvirt_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// forbidden are methods of the client library that must not be called, and why.
var forbidden = map[string]string{
	"DomainOpenGraphicsFd":     "the byte that carries a descriptor shifts the stream and ends the process",
	"DomainOpenGraphics":       "it passes a descriptor",
	"DomainCreateWithFiles":    "it passes descriptors",
	"DomainCreateXMLWithFiles": "it passes descriptors",
	"DomainFdAssociate":        "it passes descriptors",
	"ConnectSupportsFeature":   "feature 10 turns keepalive on, and the server then drops the idle connection",
	"IsConnected":              "it may be true for ever after a loss",
	"Disconnect":               "it waits without limit for a host that does not answer",
	"NewWithDialer":            "", // allowed once, see below
}

func TestSourcesKeepTheClientsRules(t *testing.T) {
	dir, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, e := range dir {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			why, bad := forbidden[sel.Sel.Name]
			switch {
			case sel.Sel.Name == "NewWithDialer":
				made++
			case bad:
				t.Errorf("%s uses %s: %s", set.Position(sel.Pos()), sel.Sel.Name, why)
			}
			return true
		})
	}
	if made != 1 {
		t.Errorf("the client is made at %d places; the guard and the deadlines need it to be one", made)
	}
}
