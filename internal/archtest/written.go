package archtest

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
)

func reparse(fset *token.FileSet, s source) (*ast.File, error) {
	return parser.ParseFile(fset, s.path, s.raw, parser.SkipObjectResolution)
}

// noImports leaves every import unresolved: the rules need scopes, not types.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) {
	return nil, errors.New("imports are not read")
}

// written lists the names at the root of everything a file assigns to.
func written(f *ast.File) (ids []*ast.Ident) {
	add := func(e ast.Expr) {
		if id := rootOf(e); id != nil {
			ids = append(ids, id)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					add(e)
				}
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				add(n.Key)
				add(n.Value)
			}
		}
		return true
	})
	return ids
}

// rootOf is x in x, x.f, x[i], *x and their mixtures.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch t := e.(type) {
		case *ast.Ident:
			return t
		case *ast.SelectorExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.StarExpr:
			e = t.X
		case *ast.ParenExpr:
			e = t.X
		default:
			return nil
		}
	}
}
