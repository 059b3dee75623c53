package house

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pure are the packages that a seed must be able to replay. They start no
// goroutine, read no clock, wait for nothing and draw no randomness by
// themselves: seam.Env does that for them. See the rules in package seam.
var pure = []string{
	"stream/internal/assign",
	"stream/internal/graph",
	"stream/internal/runtime",
}

// forbidden are names that pure packages must not use, by import path; "*" is
// the whole package.
var forbidden = map[string][]string{
	"time": {"Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Since", "Until"},
	"sync": {"Cond", "NewCond", "WaitGroup"},
	// Their deadlines are those of the real clock.
	"context":                    {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause", "AfterFunc"},
	"runtime":                    {"Gosched"},
	"math/rand":                  {"*"},
	"math/rand/v2":               {"*"},
	"crypto/rand":                {"*"},
	"hash/maphash":               {"*"}, // a new seed in each process
	"os":                         {"*"},
	"os/signal":                  {"*"},
	"net":                        {"*"},
	"net/http":                   {"*"},
	"testing":                    {"*"},
	"golang.org/x/sync/errgroup": {"*"},
}

// impurities are the places of f where it reaches past the seams.
func impurities(f file) ([]string, error) {
	fset, tree, err := f.parse()
	if err != nil {
		return nil, err
	}
	var bad []string
	add := func(at token.Pos, what string) {
		bad = append(bad, fmt.Sprintf("%s: %s: go through package seam", fset.Position(at), what))
	}
	names := map[string]string{} // of imports in this file
	for _, i := range tree.Imports {
		name, from := importName(i)
		names[name] = from
		if slices.Contains(forbidden[from], "*") {
			add(i.Pos(), "import of "+from)
		} else if name == "." && forbidden[from] != nil {
			add(i.Pos(), "dot import of "+from)
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		if what := waits(n); what != "" {
			add(n.Pos(), what)
		}
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(forbidden[names[x.Name]], s.Sel.Name) {
				add(n.Pos(), x.Name+"."+s.Sel.Name)
			}
		}
		return true
	})
	return bad, nil
}

// importName is the name that an import has in its file, and its path.
func importName(i *ast.ImportSpec) (name, from string) {
	from, err := strconv.Unquote(i.Path.Value)
	if err != nil {
		panic(err) // the parser let it pass
	}
	if i.Name != nil {
		return i.Name.Name, from
	}
	return path.Base(from), from
}

// waits names a statement or expression that starts or waits for something.
func waits(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "go statement"
	case *ast.SelectStmt:
		return "select"
	case *ast.SendStmt:
		return "channel send"
	case *ast.ChanType:
		return "channel type"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "channel receive"
		}
	}
	return ""
}

// inBuild says whether f is in a build without tags: mutants for tests are not.
func inBuild(t *testing.T, f file) bool {
	ok, err := build.Default.MatchFile(root+"/"+f.dir(), path.Base(f.path))
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestPurePackagesReachTheWorldOnlyThroughSeams(t *testing.T) {
	files := goFiles(t, func(f file) bool {
		return !f.testFile() && slices.Contains(pure, f.dir()) && inBuild(t, f)
	})
	for _, dir := range pure {
		if !slices.ContainsFunc(files, func(f file) bool { return f.dir() == dir }) {
			t.Errorf("%s has no files: the list of pure packages is out of date", dir)
		}
	}
	for _, f := range files {
		bad, err := impurities(f)
		if err != nil {
			t.Error(err)
		}
		for _, b := range bad {
			t.Error(b)
		}
	}
}

func TestImpuritiesAreFound(t *testing.T) {
	const src = `package p

import (
	"math/rand/v2"
	"sync"
	clock "time"
)

var c chan int
var mu sync.Mutex
var wg sync.WaitGroup
var d = clock.Second

func f(ctx context.Context) {
	go f(ctx)
	select {}
	c <- 1
	<-ctx.Done()
	clock.Sleep(d)
	_ = rand.Int()
}
`
	bad, err := impurities(file{"p/p.go", []byte(src)})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(bad, "\n")
	const want = `p/p.go:4:2: import of math/rand/v2: go through package seam
p/p.go:9:7: channel type: go through package seam
p/p.go:11:8: sync.WaitGroup: go through package seam
p/p.go:15:2: go statement: go through package seam
p/p.go:16:2: select: go through package seam
p/p.go:17:2: channel send: go through package seam
p/p.go:18:2: channel receive: go through package seam
p/p.go:19:2: clock.Sleep: go through package seam`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
