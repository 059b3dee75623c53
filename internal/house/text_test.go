package house

import (
	"bytes"
	"fmt"
	"go/format"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// machinePath finds folders of somebody's machine. Its parts are put together so
// that it does not find itself.
var machinePath = regexp.MustCompile(`(?:^|[^A-Za-z0-9_.~)}-])/` + `(?:work|root|home|Users)/[A-Za-z0-9_.]*`)

// twins are letters that look like ASCII letters: Cyrillic and Greek.
const twins = "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501" +
	"\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405" +
	"\u03bf\u03bd\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"

// dashes are fine in prose and wrong where somebody may copy a command.
const dashes = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"

// lookAlike says why r must not be in f, or nothing.
func lookAlike(f file, r rune) string {
	switch {
	case r < utf8.RuneSelf:
		return ""
	case unicode.Is(unicode.Zs, r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
		return "it cannot be seen"
	case r >= '\uff01' && r <= '\uff5e':
		return "it is a wide ASCII character"
	case strings.ContainsRune("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u037e", r):
		return "use the ASCII quote"
	case strings.ContainsRune(dashes, r) && !strings.HasSuffix(f.path, ".md"):
		return "use - outside of prose"
	case r == utf8.RuneError:
		return "the file is not UTF-8"
	}
	return ""
}

// mixedWord is a word of line in which a twin stands among ASCII letters.
func mixedWord(line string) string {
	for _, w := range strings.FieldsFunc(line, func(r rune) bool { return !unicode.IsLetter(r) }) {
		ascii := strings.ContainsFunc(w, func(r rune) bool { return r < utf8.RuneSelf })
		if ascii && strings.ContainsAny(w, twins) {
			return w
		}
	}
	return ""
}

// blemishes are what no file may have.
func blemishes(f file) []string {
	var bad []string
	n := 0
	for line := range strings.Lines(string(f.text)) {
		n++
		add := func(form string, args ...any) {
			bad = append(bad, fmt.Sprintf("%s:%d: ", f.path, n)+fmt.Sprintf(form, args...))
		}
		if p := machinePath.FindString(line); p != "" {
			add("a path of a machine: %q", p)
		}
		if w := mixedWord(line); w != "" {
			add("%+q looks like ASCII and is not", w)
		}
		for _, r := range line {
			if why := lookAlike(f, r); why != "" {
				add("%+q: %s", r, why)
				break
			}
		}
	}
	return bad
}

func TestFilesHaveNoMachinePathsAndNoLookAlikes(t *testing.T) {
	for _, f := range textFiles(t) {
		if strings.Contains("/"+f.path, "/testdata/") {
			continue // data from outside
		}
		for _, b := range blemishes(f) {
			t.Error(b)
		}
	}
}

func TestBlemishesAreFound(t *testing.T) {
	src := "cd /" + "work/main # no\n" +
		"open(\"/" + "home/ann/x\")\n" +
		"https://host/" + "work/ is a page, frame" + "work/ a folder, $D/" + "root/ too\n" +
		"a\u00a0space\n" +
		"p\u0430yments\n" + // a Cyrillic a
		"\u0416\u0430\u0440 is a word of its own\n" +
		"\u201cquoted\u201d\n" +
		"5\u20136\n" +
		"\u00b5s \u2192 caf\u00e9\n"
	want := []string{
		`x.go:1: a path of a machine: " /` + `work/main"`,
		`x.go:2: a path of a machine: "\"/` + `home/ann"`,
		`x.go:4: '\u00a0': it cannot be seen`,
		`x.go:5: "p\u0430yments" looks like ASCII and is not`,
		`x.go:7: '\u201c': use the ASCII quote`,
		`x.go:8: '\u2013': use - outside of prose`,
	}
	if got := blemishes(file{"x.go", []byte(src)}); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := blemishes(file{"x.md", []byte("5\u20136\n")}); len(got) != 0 {
		t.Errorf("a dash in prose: %q", got)
	}
}

// formatted says whether go fmt would leave f as it is.
func formatted(f file) (bool, error) {
	want, err := format.Source(f.text)
	if err != nil {
		return false, fmt.Errorf("formatting %s: %w", f.path, err)
	}
	return bytes.Equal(want, f.text), nil
}

func TestGoFilesAreFormatted(t *testing.T) {
	for _, f := range goFiles(t, func(file) bool { return true }) {
		ok, err := formatted(f)
		if err != nil {
			t.Error(err)
		} else if !ok {
			t.Errorf("%s: go fmt ./%s", f.path, f.dir())
		}
	}
}

func TestUnformattedTextIsFound(t *testing.T) {
	if ok, err := formatted(file{"x.go", []byte("package x\nvar  a = 1\n")}); ok || err != nil {
		t.Errorf("got %v, %v, want false", ok, err)
	}
}
