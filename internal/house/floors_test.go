package house

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// floors is the house: a package imports only what stands on a lower floor. A
// name that ends in a slash stands for all packages in that tree, which may
// import each other. See "The house" in docs/design.
var floors = map[string]int{
	"internal/assert":         0,
	"internal/seam":           0,
	"codec":                   0,
	"stream/internal/graph":   0,
	"stream/internal/assign":  0,
	"state":                   1,
	"txn":                     1,
	"changelog":               2,
	"stream/internal/runtime": 3,
	"stream/internal/kafka":   3,
	"stream/internal/model":   3,
	"stream/internal/bridge":  3,
	"stream":                  4,
	"stream/streamtest":       5,
	"sink/":                   5,
	"source/":                 5,
	"console":                 5,
	"internal/proof/check":    5,
	"internal/proof/crash":    6,
	"cmd/":                    6,
	"examples/":               6,
	"bench/":                  6,
	"sim/":                    6,
}

// ground is what the others on floor 0 may stand on.
var ground = []string{"internal/assert", "internal/seam"}

// narrow packages may import less than their floor lets them.
var narrow = map[string][]string{
	// A changelog is useful with no store and no topology.
	"changelog": {"codec", "internal/assert", "internal/seam"},
	// What stands behind the seams knows the seams, not what runs above them.
	"stream/internal/kafka": {"changelog", "internal/assert", "internal/seam", "stream/internal/assign", "txn"},
	"stream/internal/model": {"internal/assert", "internal/seam", "state", "stream/internal/assign"},
}

// beside are the arrows between neighbours that are meant.
var beside = map[string]string{
	// The bridge hands the runtime to stream's kits: a half floor.
	"stream/internal/bridge": "stream/internal/runtime",
}

// kits are test kits that are not named for the package they test.
var kits = map[string]string{
	"txn/internal/proxy": "txn",
	"internal/ownkafka":  "txn",
}

// floor finds pkg's row in floors. A test kit stands on the floor of the package
// it tests.
func floor(pkg string) (row string, n int, ok bool) {
	if n, ok := floors[pkg]; ok {
		return pkg, n, true
	}
	for row, n := range floors {
		if strings.HasSuffix(row, "/") && strings.HasPrefix(pkg+"/", row) {
			return row, n, true
		}
	}
	if of := kitOf(pkg); of != "" {
		return floor(of)
	}
	return "", 0, false
}

// kitOf is "state" for "state/statetest", and "" for what is no test kit. A kit
// with a row of its own is part of the API instead.
func kitOf(pkg string) string {
	if of := kits[pkg]; of != "" {
		return of
	}
	dir, name := path.Split(pkg)
	dir = strings.TrimSuffix(dir, "/")
	if _, own := floors[pkg]; own || dir == "" || name != path.Base(dir)+"test" {
		return ""
	}
	return dir
}

// badArrow says what is wrong with one import, or nothing.
func badArrow(from, to string) string {
	row, f, ok := floor(from)
	if !ok {
		return from + " has no floor: give it a row in floors"
	}
	_, t, ok := floor(to)
	if !ok {
		return to + " has no floor: give it a row in floors"
	}
	if kitOf(to) != "" && kitOf(from) == "" {
		return fmt.Sprintf("%s imports the test kit %s outside of its tests", from, to)
	}
	if allowed, ok := narrow[from]; ok && !slices.Contains(allowed, to) {
		return fmt.Sprintf("%s imports %s: it may have only %s", from, to, strings.Join(allowed, ", "))
	}
	sameTree := strings.HasSuffix(row, "/") && strings.HasPrefix(to+"/", row)
	onGround := slices.Contains(ground, to) && !slices.Contains(ground, from)
	if f > t || sameTree || onGround || to == kitOf(from) || to == beside[from] {
		return ""
	}
	return fmt.Sprintf("%s (floor %d) imports %s (floor %d): imports go downwards only", from, f, to, t)
}

func TestImportsOnlyGoDownwards(t *testing.T) {
	for _, p := range listPackages(t) {
		if _, _, ok := floor(p.Path); !ok {
			t.Errorf("%s has no floor: give it a row in floors", p.Path)
			continue
		}
		for _, to := range p.below() {
			if msg := badArrow(p.Path, to); msg != "" {
				t.Error(msg)
			}
		}
	}
}

func TestArrowsThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		from, to string
		bad      bool
	}{
		{"stream", "state", false},
		{"state", "codec", false},
		{"stream/internal/assign", "internal/seam", false},
		{"stream/internal/runtime", "changelog", false},
		{"stream/internal/kafka", "txn", false},
		{"stream/streamtest", "stream/internal/runtime", false},
		{"state/statetest", "state", false},
		{"internal/seam/seamtest", "internal/seam", false},
		{"bench/crash", "stream", false},
		{"bench/crash", "bench/internal/table", false},
		{"cmd/semel", "stream/streamtest", false},
		{"stream/internal/bridge", "stream/internal/runtime", false},

		{"state", "txn", true},                                      // neighbours
		{"state", "stream", true},                                   // upwards
		{"internal/seam", "internal/assert", true},                  // within the ground
		{"codec", "stream/internal/graph", true},                    // within floor 0
		{"changelog", "txn", true},                                  // narrow
		{"stream/internal/kafka", "stream/internal/runtime", true},  // narrow
		{"stream/internal/model", "txn", true},                      // narrow
		{"stream/internal/runtime", "stream/internal/kafka", true},  // neighbours
		{"stream/internal/runtime", "stream/internal/bridge", true}, // neighbours, the other way
		{"txn", "txn/internal/proxy", true},                         // a kit outside of tests
		{"stream", "state/statetest", true},                         // a kit outside of tests
		{"examples/wordcount", "bench/crash", true},                 // another tree of its floor
		{"somewhere/new", "codec", true},                            // no floor
		{"stream", "stream/internal/new", true},                     // no floor
	} {
		if msg := badArrow(c.from, c.to); (msg != "") != c.bad {
			t.Errorf("%s -> %s: got %q, want a complaint: %v", c.from, c.to, msg, c.bad)
		}
	}
}
