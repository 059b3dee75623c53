package statetest

import (
	"maps"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// history of the model's store of versions, in ms.
const history = 30

// versions is a versioned store of the model: every version that was ever put,
// and the rules of reading.
type versions struct {
	s    *state.Versioned[string, string]
	part *state.Part

	log                  []state.Row
	now, mark, committed map[string]map[int64]string // by key and time; "" deletes
	closing              map[string]map[int64]string
	closingTime          int64
	time, markTime, kept int64
	viewed               int64           // the committed time as the store knows it
	fresh, markFresh     map[string]bool // what the transaction put, as key@time
	written              int             // how long the log was when the transaction began
}

func newVersions() *versions {
	v := &versions{now: map[string]map[int64]string{}, time: math.MinInt64, fresh: map[string]bool{}}
	v.freeze()
	v.commit()
	return v
}

func cloneVersions(m map[string]map[int64]string) map[string]map[int64]string {
	out := map[string]map[int64]string{}
	for k, v := range m {
		out[k] = maps.Clone(v)
	}
	return out
}

func (v *versions) setMark() {
	v.mark, v.markTime, v.markFresh = cloneVersions(v.now), v.time, maps.Clone(v.fresh)
}

func (v *versions) undo() {
	v.now, v.time, v.fresh = cloneVersions(v.mark), v.markTime, maps.Clone(v.markFresh)
}

func (v *versions) freeze() {
	v.closing, v.closingTime, v.fresh, v.written = cloneVersions(v.now), v.time, map[string]bool{}, len(v.log)
	v.setMark()
}

func (v *versions) commit() { v.committed, v.kept, v.viewed = v.closing, v.closingTime, v.closingTime }

func (v *versions) logged(r state.Row) { v.log = append(v.log, r) }

// checkLog looks at what the transaction wrote: versions that it put, of each
// key in order of time.
func (v *versions) checkLog(m *windows) {
	seen := map[string]int64{}
	for _, r := range v.log[v.written:] {
		k := string(r.Key)
		if !v.fresh[stamp(k, r.Time)] || v.now[k][r.Time] != string(r.Value) {
			m.Fatalf("the changelog has %q at %d for %q", r.Value, r.Time, k)
		}
		if before, ok := seen[k]; ok && before >= r.Time {
			m.Fatalf("%q: version %d after %d", k, r.Time, before)
		}
		seen[k] = r.Time
	}
}

func stamp(key string, at int64) string { return key + "@" + strings.Repeat("x", int(at)) }

// restore brings the store to where its changelog is; versions that no read
// can reach are of no account.
func (v *versions) restore(m *windows) {
	if rapid.IntRange(0, 9).Draw(m.T, "reset") == 0 {
		m.must(v.part.Reset())
	}
	at := v.part.Position()
	mid := rapid.Int64Range(at, int64(len(v.log))).Draw(m.T, "restore to")
	m.must(v.part.Apply(slices.Values(v.log[at:mid]), mid))
	m.must(v.part.Apply(slices.Values(v.log[mid:]), int64(len(v.log))))
	v.s.SetTime(v.kept)
	v.now, v.time, v.fresh = cloneVersions(v.committed), v.kept, map[string]bool{}
	v.setMark()
}

func drawVersion(t *rapid.T) (key string, at int64) {
	return rapid.SampledFrom([]string{"a", "b", "long enough for no entry"}).Draw(t, "key"), rapid.Int64Range(0, 100).Draw(t, "at")
}

func (m *windows) putVersion(t *rapid.T) {
	v := m.versions
	key, at := drawVersion(t)
	value := m.newRow().value
	var to int64
	var ok bool
	var err error
	if rapid.IntRange(0, 2).Draw(t, "delete") == 0 {
		value = ""
		to, ok, err = v.s.Delete(key, at)
	} else {
		to, ok, err = v.s.Put(key, at, value)
	}
	m.must(err)
	if want := v.time == math.MinInt64 || at >= v.time-history; ok != want {
		m.Fatalf("%q at %d, time %d: put is %v", key, at, v.time, ok)
	}
	if !ok {
		return
	}
	v.time = max(v.time, at)
	if v.now[key] == nil {
		v.now[key] = map[int64]string{}
	}
	v.now[key][at] = value
	v.fresh[stamp(key, at)] = true
	if want := next(v.now[key], at); to != want {
		m.Fatalf("%q at %d: valid to %d, want %d", key, at, to, want)
	}
}

// next is when the version behind at begins.
func next(of map[int64]string, at int64) int64 {
	for _, t := range slices.Sorted(maps.Keys(of)) {
		if t > at {
			return t
		}
	}
	return math.MaxInt64
}

// get is what GetAsOf is to find.
func get(of map[int64]string, at, time int64) (value string, from, to int64, ok bool) {
	from = -1
	for t := range of {
		if t <= at {
			from = max(from, t)
		}
	}
	to = next(of, from)
	if from < 0 || of[from] == "" || to != math.MaxInt64 && time != math.MinInt64 && at < time-history {
		return "", 0, 0, false
	}
	return of[from], from, to, true
}

func (m *windows) asOf(t *rapid.T) {
	key, at := drawVersion(t)
	m.wantAsOf(key, at)
	newest, from, ok, err := m.versions.s.Get(key)
	m.must(err)
	if want, wantFrom, _, has := get(m.versions.now[key], math.MaxInt64, m.versions.time); newest != want || from != wantFrom || ok != has {
		m.Fatalf("%q is %q from %d (%v), want %q from %d (%v)", key, newest, from, ok, want, wantFrom, has)
	}
	m.wantHistory(t, key)
}

func (m *windows) wantAsOf(key string, at int64) {
	m.Helper()
	v := m.versions
	got, from, to, ok, err := v.s.GetAsOf(key, at)
	m.must(err)
	want, wantFrom, wantTo, has := get(v.now[key], at, v.time)
	if got != want || from != wantFrom || to != wantTo || ok != has {
		m.Fatalf("%q as of %d (time %d) is %q [%d,%d) %v, want %q [%d,%d) %v", key, at, v.time, got, from, to, ok, want, wantFrom, wantTo, has)
	}
}

// wantHistory compares the history with what GetAsOf finds at each time.
func (m *windows) wantHistory(t *rapid.T, key string) {
	v := m.versions
	first, last := rapid.Int64Range(0, 60).Draw(t, "first"), rapid.Int64Range(0, 100).Draw(t, "last")
	var want []state.VersionRow[string]
	for at := first; at <= last; at++ {
		value, from, to, ok := get(v.now[key], at, v.time)
		if !ok || len(want) > 0 && want[len(want)-1].From == from {
			continue
		}
		want = append(want, state.VersionRow[string]{Value: value, From: from, To: to})
	}
	var got []state.VersionRow[string]
	for row, err := range v.s.History(key, first, last) {
		m.must(err)
		got = append(got, row)
	}
	if !slices.Equal(got, want) {
		m.Fatalf("history of %q from %d to %d, time %d: %v, want %v", key, first, last, v.time, got, want)
	}
}

func (m *windows) viewAsOf(t *rapid.T) {
	key, at := drawVersion(t)
	v := m.versions
	if v.viewed != v.kept { // before the first commit a view finds more, or what is left of it
		return
	}
	got, from, to, ok, err := v.s.View().GetAsOf(key, at)
	m.must(err)
	if want, wantFrom, wantTo, has := get(v.committed[key], at, v.kept); got != want || from != wantFrom || to != wantTo || ok != has {
		m.Fatalf("a view has %q of %q as of %d, want %q", got, key, at, want)
	}
	m.viewNewest(key)
}

// viewNewest compares the newest rows that a view has up to a key.
func (m *windows) viewNewest(last string) {
	v, want := m.versions, map[string]string{}
	for key, of := range v.committed {
		if value, _, _, ok := get(of, math.MaxInt64, v.kept); ok && key <= last {
			want[key] = value
		}
	}
	got := map[string]string{}
	for e, err := range v.s.View().Range("", last) {
		m.must(err)
		got[e.Key] = e.Value
	}
	if !maps.Equal(got, want) {
		m.Fatalf("a view has %q up to %q, want %q", got, last, want)
	}
}

func (v *versions) checkAll(m *windows) {
	for key := range v.now {
		for at := int64(0); at <= 101; at += 3 {
			m.wantAsOf(key, at)
		}
	}
}

// elsewhere compares with a store that was made from the changelog.
func (v *versions) elsewhere(m *windows, db *state.DB) {
	m.must(db.Part("versions").Apply(slices.Values(v.log), int64(len(v.log))))
	s, err := state.OpenVersioned(db, "versions", codec.String, codec.String, history)
	m.must(err)
	s.SetTime(v.kept)
	for key := range v.committed {
		for at := range int64(102) {
			got, from, to, ok, err := s.GetAsOf(key, at)
			m.must(err)
			if want, wantFrom, wantTo, has := get(v.committed[key], at, v.kept); got != want || from != wantFrom || to != wantTo || ok != has {
				m.Fatalf("elsewhere: %q as of %d (time %d) is %q [%d,%d) %v, want %q [%d,%d) %v", key, at, v.kept, got, from, to, ok, want, wantFrom, wantTo, has)
			}
		}
	}
}
