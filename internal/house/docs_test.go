package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
)

// undocumented are the exported names of f that nothing explains: functions,
// methods of exported types, types, constants and variables. A group of
// constants or variables may be explained as one.
func undocumented(f file) ([]string, error) {
	fset, tree, err := f.parse()
	if err != nil {
		return nil, err
	}
	var bad []string
	add := func(at token.Pos, what string) {
		bad = append(bad, fmt.Sprintf("%s: %s has no doc comment", fset.Position(at), what))
	}
	for _, d := range tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if name, ok := exportedFunc(d); ok && empty(d.Doc) {
				add(d.Pos(), name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				for _, id := range bareNames(d, s) {
					add(id.Pos(), id.Name)
				}
			}
		}
	}
	return bad, nil
}

// exportedFunc names d as a user would and says whether a user can.
func exportedFunc(d *ast.FuncDecl) (string, bool) {
	if d.Recv == nil {
		return d.Name.Name, d.Name.IsExported()
	}
	on := receiver(d.Recv.List[0].Type)
	return on + "." + d.Name.Name, d.Name.IsExported() && token.IsExported(on)
}

// receiver is the type's name in a receiver: T of T, *T, T[K] and *T[K, V].
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.ParenExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return ""
}

// bareNames are the exported names of s that no comment covers.
func bareNames(d *ast.GenDecl, s ast.Spec) []*ast.Ident {
	switch s := s.(type) {
	case *ast.TypeSpec:
		// Types of a group are each worth a sentence, but for aliases, which have
		// theirs where they point.
		covers := !d.Lparen.IsValid() || s.Assign.IsValid()
		if s.Name.IsExported() && empty(s.Doc) && (!covers || empty(d.Doc)) {
			return []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		if !empty(d.Doc) || !empty(s.Doc) || !empty(s.Comment) {
			return nil
		}
		var bare []*ast.Ident
		for _, id := range s.Names {
			if id.IsExported() {
				bare = append(bare, id)
			}
		}
		return bare
	}
	return nil
}

// empty is true of a comment that is absent or only a directive.
func empty(c *ast.CommentGroup) bool { return strings.TrimSpace(c.Text()) == "" }

func TestExportedNamesHaveADocComment(t *testing.T) {
	for _, f := range goFiles(t, func(f file) bool { return !f.testFile() }) {
		bad, err := undocumented(f)
		if err != nil {
			t.Error(err)
		}
		for _, b := range bad {
			t.Error(b)
		}
	}
}

func TestPackagesHaveADocComment(t *testing.T) {
	told := map[string]bool{}
	for _, f := range goFiles(t, func(f file) bool { return !f.testFile() }) {
		_, tree, err := f.parse()
		if err != nil {
			t.Error(err)
			continue
		}
		told[f.dir()] = told[f.dir()] || !empty(tree.Doc)
	}
	for _, dir := range slices.Sorted(maps.Keys(told)) {
		if !told[dir] {
			t.Errorf("package %s has no package comment in any of its files", dir)
		}
	}
}

func TestUndocumentedNamesAreFound(t *testing.T) {
	const src = `package p

func F() {}
func g() {}

// H is told.
func H() {}

//go:noinline
func I() {}

type T[K, V any] struct{}

func (t *T[K, V]) M() {}
func (t *T[K, V]) n() {}

type u struct{}

func (u) M() {}

// A group of types.
type (
	A int
	// B is told.
	B int
	N = B
)

// A group of aliases.
type (
	O = A
	P = B
)

// C is told.
type C int

const D = 1

// A group of constants.
const (
	E = iota
)

var (
	J = 1 // told
	K, l = 2, 3
)
`
	bad, err := undocumented(file{"p/p.go", []byte(src)})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(bad, "\n")
	const want = `p/p.go:3:1: F has no doc comment
p/p.go:10:1: I has no doc comment
p/p.go:12:6: T has no doc comment
p/p.go:14:1: T.M has no doc comment
p/p.go:23:2: A has no doc comment
p/p.go:38:7: D has no doc comment
p/p.go:47:2: K has no doc comment`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
