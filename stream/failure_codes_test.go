package stream_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// The ways in which sources name a code.
	codeInSource = regexp.MustCompile(`"SEMEL-([A-Z][A-Z-]*[A-Z])"|\[SEMEL-([A-Z][A-Z-]*[A-Z])\]|\bfault\("([A-Z][A-Z-]*[A-Z])"|^\t\{"([A-Z][A-Z-]*[A-Z])", "`)
	codeInTable  = regexp.MustCompile(`(?m)^\| SEMEL-([A-Z-]+) \| [^|]+ \| [^|]+ \|$`)
)

func TestEveryErrorCodeIsInTheReferenceAndEveryOneThereIsInTheSources(t *testing.T) {
	sources := map[string]string{} // code: a file that has it
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "//") || strings.Contains(line, `"SEMEL-" +`) {
				continue
			}
			line, _, _ = strings.Cut(line, " // ")
			for _, m := range codeInSource.FindAllStringSubmatch(line, -1) {
				if code := m[1] + m[2] + m[3] + m[4]; m[4] == "" || filepath.Base(path) == "explain.go" {
					sources[code] = path
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]bool{}
	for _, m := range codeInTable.FindAllStringSubmatch(string(doc), -1) {
		if table[m[1]] {
			t.Errorf("SEMEL-%s is in the reference twice", m[1])
		}
		table[m[1]] = true
	}
	for _, code := range slices.Sorted(maps.Keys(sources)) {
		if !table[code] {
			t.Errorf("SEMEL-%s, of %s, is not in docs/reference/errors.md", code, sources[code])
		}
	}
	for code := range table {
		if sources[code] == "" {
			t.Errorf("SEMEL-%s is in docs/reference/errors.md and in no source", code)
		}
	}
	if len(sources) < 20 {
		t.Errorf("only %d codes were found", len(sources))
	}
}
