package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/semelstream/semel"

// A pkg is what go list says of a package: its path below the module and its
// imports outside of tests.
type pkg struct {
	Path    string `json:"ImportPath"`
	GoFiles []string
	Imports []string
}

// below are p's imports of this module, without the module's path.
func (p pkg) below() []string {
	var in []string
	for _, i := range p.Imports {
		if rest, ok := strings.CutPrefix(i, module+"/"); ok {
			in = append(in, rest)
		}
	}
	return in
}

// listPackages asks go list for the packages that have more than tests.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,GoFiles,Imports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if len(p.GoFiles) == 0 {
			continue
		}
		p.Path = strings.TrimPrefix(p.Path, module+"/")
		slices.Sort(p.Imports)
		pkgs = append(pkgs, p)
	}
	if len(pkgs) == 0 {
		t.Fatal("go list found no package")
	}
	slices.SortFunc(pkgs, func(a, b pkg) int { return strings.Compare(a.Path, b.Path) })
	return pkgs
}

// importMap is the golden file: each package, and under it what it imports.
func importMap(pkgs []pkg) []byte {
	var b bytes.Buffer
	for _, p := range pkgs {
		fmt.Fprintln(&b, p.Path)
		for _, to := range p.below() {
			fmt.Fprintln(&b, "\t"+to)
		}
	}
	return b.Bytes()
}

// An arrow between two packages is a decision: it shows in review as a line of
// the golden file.
func TestImportMapIsAsWrittenDown(t *testing.T) {
	const golden = "testdata/imports.txt"
	got := importMap(listPackages(t))
	if *rewrite {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := arrowDiff(want, got); diff != "" {
		t.Errorf("the import map has changed; if that is meant, go test ./internal/house -rewrite\n%s", diff)
	}
}

// arrowDiff names what is in one map only.
func arrowDiff(want, got []byte) string {
	var b strings.Builder
	w, g := arrows(want), arrows(got)
	for _, a := range w {
		if !slices.Contains(g, a) {
			fmt.Fprintln(&b, "gone:", a)
		}
	}
	for _, a := range g {
		if !slices.Contains(w, a) {
			fmt.Fprintln(&b, "new: ", a)
		}
	}
	return b.String()
}

// arrows reads an import map back as "from" and "from -> to".
func arrows(text []byte) []string {
	var all []string
	var from string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if to, ok := strings.CutPrefix(line, "\t"); ok {
			all = append(all, from+" -> "+to)
			continue
		}
		from = line
		all = append(all, from)
	}
	return all
}

func TestArrowDiffNamesNewAndGoneArrows(t *testing.T) {
	got := arrowDiff([]byte("a\n\tb\n\tc\nd\n"), []byte("a\n\tb\n\td\ne\n"))
	const want = "gone: a -> c\ngone: d\nnew:  a -> d\nnew:  e\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// reserved are imports from outside that only some trees may have.
var reserved = []struct {
	prefix string
	trees  []string
	why    string
}{
	{"github.com/cockroachdb/pebble", []string{"state"}, "the engine can be changed only if one package knows it"},
	{"github.com/twmb/franz-go/pkg/kfake", []string{"stream/streamtest", "sim", "bench", "examples", "cmd"}, "a fake broker is no part of the library"},
	{"pgregory.net/rapid", nil, "a test library is for tests"},
	{"testing", []string{"stream/streamtest", "sim"}, "package testing is for tests and test kits"},
}

// outsider says what is wrong with an import from outside, or nothing.
func outsider(from, to string) string {
	for _, r := range reserved {
		if to != r.prefix && !strings.HasPrefix(to, r.prefix+"/") || kitOf(from) != "" {
			continue
		}
		if !slices.ContainsFunc(r.trees, func(tree string) bool { return strings.HasPrefix(from+"/", tree+"/") }) {
			return fmt.Sprintf("%s imports %s: %s", from, to, r.why)
		}
	}
	return ""
}

func TestReservedImportsStayWhereTheyBelong(t *testing.T) {
	for _, p := range listPackages(t) {
		for _, to := range p.Imports {
			if msg := outsider(p.Path, to); msg != "" {
				t.Error(msg)
			}
		}
	}
}

func TestReservedImportsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		from, to string
		bad      bool
	}{
		{"state", "github.com/cockroachdb/pebble/v2", false},
		{"state/statetest", "testing", false},
		{"stream", "github.com/cockroachdb/pebble/v2/vfs", true},
		{"statement", "github.com/cockroachdb/pebble/v2", true},
		{"txn", "testing", true},
		{"txn", "testing/synctest", true},
		{"changelog", "github.com/twmb/franz-go/pkg/kfake", true},
		{"changelog", "github.com/twmb/franz-go/pkg/kgo", false},
	} {
		if msg := outsider(c.from, c.to); (msg != "") != c.bad {
			t.Errorf("%s -> %s: got %q, want a complaint: %v", c.from, c.to, msg, c.bad)
		}
	}
}
