package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Violation is one broken rule.
type Violation struct {
	Rule string // "imports", "vendor", "length", "clock", "init", "name", "global", "descriptor"
	Pos  string // path:line
	Text string
}

func (v Violation) String() string { return v.Pos + ": " + v.Rule + ": " + v.Text }

// source is one parsed file.
type source struct {
	path string // slashes, relative to the module
	dir  string
	fset *token.FileSet
	file *ast.File
	raw  []byte
}

func (s source) at(p token.Pos) string { return s.path + ":" + strconv.Itoa(s.fset.Position(p).Line) }

// Check reads every Go file below root and returns what breaks a rule.
func Check(root fs.FS) ([]Violation, error) {
	var found []Violation
	packages := map[string][]source{}
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if n := d.Name(); path != "." && (strings.HasPrefix(n, ".") || n == "testdata" || n == "node_modules" || n == "bin" || n == "var") {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		raw, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, raw, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("parse %s: %w", path, err)
		}
		dir, _ := split(path)
		s := source{path: path, dir: dir, fset: fset, file: file, raw: raw}
		packages[dir] = append(packages[dir], s)
		found = append(found, checkFile(s)...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, files := range packages {
		found = append(found, checkGlobals(files)...)
	}
	slices.SortFunc(found, func(a, b Violation) int { return strings.Compare(a.Pos, b.Pos) })
	return found, nil
}

func checkFile(s source) []Violation {
	return slices.Concat(checkLength(s), checkName(s), checkImports(s), checkVendors(s), checkClock(s), checkInit(s), checkDescriptors(s))
}

func checkLength(s source) []Violation {
	lines := bytes.Count(s.raw, []byte("\n"))
	if lines <= MaxLines || ast.IsGenerated(s.file) {
		return nil
	}
	return []Violation{{"length", s.path, fmt.Sprintf("%d lines; split it by verb, at most %d", lines, MaxLines)}}
}

func checkName(s source) []Violation {
	if !slices.Contains(vagueNames, s.file.Name.Name) {
		return nil
	}
	return []Violation{{"name", s.path, "package " + s.file.Name.Name + " says nothing about what is inside"}}
}

func checkInit(s source) (found []Violation) {
	if ast.IsGenerated(s.file) {
		return nil
	}
	for _, d := range s.file.Decls {
		if f, isFunc := d.(*ast.FuncDecl); isFunc && f.Recv == nil && f.Name.Name == "init" {
			found = append(found, Violation{"init", s.at(f.Pos()), "nothing works behind the back of main: no init functions"})
		}
	}
	return found
}

func importPath(i *ast.ImportSpec) string { p, _ := strconv.Unquote(i.Path.Value); return p }

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func checkImports(s source) (found []Violation) {
	for _, i := range s.file.Imports {
		path := importPath(i)
		target, ours := strings.CutPrefix(path, module)
		if !ours {
			if s.dir == "." && !isStandard(path) && !isTestCode(s.path) {
				found = append(found, Violation{"imports", s.at(i.Pos()), "the domain uses the standard library only, not " + path})
			}
			continue
		}
		target = strings.TrimPrefix(target, "/")
		if target == "" {
			target = "."
		}
		if !mayImport(s, target) {
			found = append(found, Violation{"imports", s.at(i.Pos()), fmt.Sprintf("%s may not import %s", s.dir, target)})
		}
	}
	return found
}

func mayImport(s source, target string) bool {
	if within(target, "cmd") && !within(s.dir, "cmd") {
		return false
	}
	if s.dir == "." && !isTestCode(s.path) {
		return false
	}
	if target == "." || within(target, "internal") || target == s.dir {
		return true
	}
	if strings.HasSuffix(s.path, "_test.go") && (!within(s.dir, "api") || within(target, "persistence")) && !within(target, "actors") {
		return true // a test may wire real neighbours, but the API is tested without the actors
	}
	for _, parent := range siblings {
		if within(s.dir, parent) && s.dir != parent && within(target, parent) && target != parent {
			mine, _, _ := strings.Cut(strings.TrimPrefix(s.dir, parent+"/"), "/")
			theirs, _, _ := strings.Cut(strings.TrimPrefix(target, parent+"/"), "/")
			return mine == theirs
		}
	}
	return slices.ContainsFunc(allowedFor(s.dir), func(entry string) bool {
		folder, below := strings.CutSuffix(entry, "...")
		folder = strings.TrimSuffix(folder, "/")
		return target == folder || below && (folder == "" || within(target, folder))
	})
}

// allowedFor joins the rules of the folder and those above it, but for the
// folders that are stricter than their parents.
func allowedFor(dir string) []string {
	var longest string
	for folder := range imports {
		if folder != "." && within(dir, folder) && len(folder) > len(longest) {
			longest = folder
		}
	}
	allowed := imports[longest]
	if parent, _, nested := strings.Cut(longest, "/"); nested && parent == "tests" {
		allowed = append(slices.Clone(allowed), imports[parent]...)
	}
	return allowed
}

func checkVendors(s source) (found []Violation) {
	for _, i := range s.file.Imports {
		path := importPath(i)
		for prefix, folders := range vendors {
			if !strings.HasPrefix(path, prefix) || slices.ContainsFunc(folders, func(f string) bool { return within(s.dir, f) }) {
				continue
			}
			found = append(found, Violation{"vendor", s.at(i.Pos()), fmt.Sprintf("%s is imported only below %s", path, strings.Join(folders, ", "))})
		}
	}
	return found
}
