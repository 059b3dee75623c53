// Package house holds the rules of the source tree that no compiler and no
// general linter knows: which package may import which, that exported names are
// explained, that the runtime reaches the world only through its seams, and what
// no file may contain. It has tests only.
//
// Each rule is a function from source text to complaints. One test hands it the
// tree, another hands it text that breaks the rule, so that a rule that finds
// nothing is known to look.
package house

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew instead of comparing")

// root is the module's folder, from the folder that go test runs this package in.
const root = "../.."

// A file is one text file of the tree, with its slash-separated path below root.
type file struct {
	path string
	text []byte
}

// goFile says whether f is compiled by somebody: testdata is not.
func (f file) goFile() bool {
	return strings.HasSuffix(f.path, ".go") && !strings.Contains("/"+f.path, "/testdata/")
}

func (f file) testFile() bool { return strings.HasSuffix(f.path, "_test.go") }

// dir is the package's path below root, "." for the root itself.
func (f file) dir() string { return filepath.ToSlash(filepath.Dir(f.path)) }

// parse is f's syntax tree with comments.
func (f file) parse() (*token.FileSet, *ast.File, error) {
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, f.path, f.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing: %w", err)
	}
	return fset, tree, nil
}

// maxText bounds what is read as text: what is larger was made by a machine.
const maxText = 4 << 20

// textFiles are the tree's text files, in order of path.
func textFiles(t *testing.T) []file {
	t.Helper()
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(filepath.ToSlash(rel))
		}
		if rel == ".git" { // of a second work tree
			return nil
		}
		if info, err := d.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > maxText {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && !bytes.ContainsRune(text, 0) {
			files = append(files, file{filepath.ToSlash(rel), text})
		}
		return err
	})
	if err != nil {
		t.Fatalf("reading the tree: %v", err)
	}
	if len(files) == 0 {
		t.Fatal("there is no file in the tree: root is wrong")
	}
	return files
}

// skipDir leaves out what is not the project's: see .gitignore.
func skipDir(rel string) error {
	switch rel {
	case ".git", ".idea", ".vscode", "data":
		return filepath.SkipDir
	}
	return nil
}

// goFiles are the tree's Go files that satisfy keep.
func goFiles(t *testing.T, keep func(file) bool) []file {
	t.Helper()
	var files []file
	for _, f := range textFiles(t) {
		if f.goFile() && keep(f) {
			files = append(files, f)
		}
	}
	return files
}
