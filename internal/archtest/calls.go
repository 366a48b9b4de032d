package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// localName is the name under which a file knows an import, "" when it does not.
func localName(s source, path string) string {
	for _, i := range s.file.Imports {
		if importPath(i) != path {
			continue
		}
		if i.Name != nil {
			return i.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

// checkClock: only internal/clock reads the time or waits. Tests may bound and
// poll, but never sleep, unless the time is that of a synctest bubble.
func checkClock(s source) (found []Violation) {
	name := localName(s, "time")
	switch {
	case name == "" || s.dir == "internal/clock":
		return nil
	case name == ".":
		return []Violation{{"clock", s.path, "a dot import of time hides who reads the clock"}}
	}
	forbidden := clockFuncs
	if isTestCode(s.path) {
		if localName(s, "testing/synctest") != "" {
			return nil
		}
		forbidden = []string{"Sleep"}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, isIdent := sel.X.(*ast.Ident); isIdent && x.Name == name && slices.Contains(forbidden, sel.Sel.Name) {
			found = append(found, Violation{"clock", s.at(sel.Pos()), fmt.Sprintf("time.%s outside internal/clock", sel.Sel.Name)})
		}
		return true
	})
	return found
}

func checkDescriptors(s source) (found []Violation) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(passesDescriptors, sel.Sel.Name) {
			found = append(found, Violation{"descriptor", s.at(sel.Pos()), sel.Sel.Name + " passes a file descriptor and breaks the connection"})
		}
		return true
	})
	return found
}

// checkGlobals: no package-level variable is written after its declaration. It
// resolves names with the type checker, without imports: enough to tell a local
// from a global.
func checkGlobals(files []source) (found []Violation) {
	byPackage := map[string][]source{}
	for _, s := range files {
		byPackage[s.file.Name.Name] = append(byPackage[s.file.Name.Name], s)
	}
	for name, group := range byPackage {
		fset := token.NewFileSet()
		var parsed []*ast.File
		paths := map[*ast.File]source{}
		for _, s := range group {
			if isTestCode(s.path) {
				continue
			}
			f, err := reparse(fset, s)
			if err != nil {
				continue
			}
			parsed = append(parsed, f)
			paths[f] = s
		}
		if len(parsed) == 0 {
			continue
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		conf := types.Config{Importer: noImports{}, Error: func(error) {}, FakeImportC: true}
		pkg, _ := conf.Check(name, fset, parsed, info)
		for _, f := range parsed {
			for _, id := range written(f) {
				v, isVar := info.Uses[id].(*types.Var)
				if isVar && pkg != nil && v.Parent() == pkg.Scope() {
					pos := fset.Position(id.Pos())
					found = append(found, Violation{"global", fmt.Sprintf("%s:%d", paths[f].path, pos.Line), "package variable " + id.Name + " is written; pass it instead"})
				}
			}
		}
	}
	return found
}
