package statetest

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// row is a row of the model, and a changelog record when it has a key.
type row struct {
	value string
	time  int64
}

type change struct {
	key     string
	row     row
	deletes bool
}

// table is a store of the model: what it should hold in each of its states,
// all of it made from a changelog.
type table struct {
	name string
	kv   *state.KV[string, string]
	part *state.Part

	log       []change // offset 0 is its first record
	committed map[string]row
	now       map[string]row
	mark      map[string]row
	order     []string // keys in order of first change
	markOrder []string
	stored    int64 // position of the engine, at least
	flushed   int64 // position on the disk, at least
}

// fold is the changelog up to pos.
func (tb *table) fold(pos int64) map[string]row {
	out := map[string]row{}
	for _, c := range tb.log[:pos] {
		if c.deletes {
			delete(out, c.key)
		} else {
			out[c.key] = c.row
		}
	}
	return out
}

// testModel turns a DB at random against plain maps.
func testModel(t *testing.T, fresh func(t testing.TB) Disk) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{
			T:      rt,
			disk:   fresh(t),
			cache:  rapid.SampledFrom([]int64{1, 400, 1 << 20}).Draw(rt, "cache"),
			tables: []*table{{name: "first"}, {name: "second"}},
			tick:   1,
		}
		m.open()
		defer m.close()
		rt.Repeat(map[string]func(*rapid.T){
			"put":       m.put,
			"delete":    m.remove,
			"findSet":   m.findSet,
			"ifAbsent":  m.ifAbsent,
			"get":       m.get,
			"meta":      m.setMeta,
			"mark":      m.setMark,
			"undo":      m.undo,
			"commit":    m.commit,
			"commit2":   m.commit,
			"persist":   m.persist,
			"write":     m.writeOut,
			"persisted": m.persisted,
			"rewind":    m.rewind,
			"flush":     m.flush,
			"reopen":    m.reopen,
			"crash":     m.crash,
			"scan":      m.scan,
			"walk":      m.walk,
			"view":      m.view,
			"changed":   m.changed,
			"len":       m.length,
			"idle":      func(*rapid.T) {},
		})
		m.checkAll()
	})
}

type model struct {
	*rapid.T
	disk   Disk
	engine *flaky
	db     *state.DB
	cache  int64
	tables []*table
	tick   int64 // time of the next change

	meta, metaCommitted, metaMark map[string]int64
	metaLog                       []map[string]int64 // after each commit
	metaStored, metaFlushed       map[string]int64   // what the engine and the disk have at least

	write     *state.Write
	writePos  []int64
	writeMeta map[string]int64
	written   bool
	writeErr  error
}

// flaky is an engine whose next Write may fail, applied or not.
type flaky struct {
	state.Engine
	before, after bool
}

var errFlaky = errors.New("the disk had a bad moment")

func (f *flaky) Write(b *state.Batch) error {
	if f.before {
		f.before = false
		return errFlaky
	}
	err := f.Engine.Write(b)
	if f.after && err == nil {
		f.after = false
		return errFlaky
	}
	return err
}

func (m *model) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// open opens the disk, checks what is on it against the changelogs, and
// restores the rest.
func (m *model) open() {
	e, err := m.disk.Open()
	m.must(err)
	m.engine = &flaky{Engine: e}
	var specs []state.Spec
	for _, tb := range m.tables {
		specs = append(specs, state.Spec{Name: tb.name})
	}
	m.db, err = state.Open(m.engine, state.Options{Stores: specs, CacheBytes: m.cache})
	m.must(err)
	for _, tb := range m.tables {
		tb.part = m.db.Part(tb.name)
		tb.kv, err = state.OpenKV(m.db, tb.name, codec.String, codec.String)
		m.must(err)
	}
	m.write = nil
	for _, tb := range m.tables {
		tb.stored = tb.flushed
	}
	m.metaStored = m.metaFlushed
	m.checkStored()
	m.restore()
}

// checkStored is the promise: the engine's rows are the changelog's up to its
// position, and nothing is lost that was stored.
func (m *model) checkStored() {
	for _, tb := range m.tables {
		pos := tb.part.Position()
		if pos < tb.stored || pos > int64(len(tb.log)) {
			m.Fatalf("%s: position %d, stored %d, end %d", tb.name, pos, tb.stored, len(tb.log))
		}
		m.wantRows(tb, tb.fold(pos))
		tb.stored = pos
	}
	m.checkMeta()
}

// checkMeta: meta is that of some commit, and not of one before the stored
// one; its numbers only grow.
func (m *model) checkMeta() {
	got := m.db.Meta()
	for name, v := range m.metaStored {
		if got[name] < v {
			m.Fatalf("meta is %v, %v was stored", got, m.metaStored)
		}
	}
	if len(got) > 0 && !slices.ContainsFunc(m.metaLog, func(old map[string]int64) bool { return maps.Equal(got, old) }) {
		m.Fatalf("meta is %v, never committed: %v", got, m.metaLog)
	}
	m.metaStored = got
}

// restore applies the rest of the changelogs, in two batches.
func (m *model) restore() {
	for _, tb := range m.tables {
		if rapid.IntRange(0, 9).Draw(m.T, "reset") == 0 {
			m.must(tb.part.Reset())
			if tb.part.Position() != 0 {
				m.Fatal("Reset left a position")
			}
			m.wantRows(tb, nil)
			tb.flushed = 0 // a crash may come before or after the Reset
		}
		for range 2 {
			at := tb.part.Position()
			end := rapid.Int64Range(at, int64(len(tb.log))).Draw(m.T, "restore to")
			m.apply(tb, end)
		}
		m.apply(tb, int64(len(tb.log)))
		tb.stored = int64(len(tb.log))
		tb.committed = tb.fold(tb.stored)
		tb.now, tb.mark = maps.Clone(tb.committed), maps.Clone(tb.committed)
		tb.order, tb.markOrder = nil, nil
	}
	m.meta = m.db.Meta()
	m.metaCommitted, m.metaMark = maps.Clone(m.meta), maps.Clone(m.meta)
}

func (m *model) apply(tb *table, end int64) {
	// A row that was read before must not be the old one afterwards.
	_, _, _, err := tb.kv.Get(key(m.T))
	m.must(err)
	changes := tb.log[tb.part.Position():end]
	m.must(tb.part.Apply(asRows(changes), end))
	if tb.part.Position() != end || tb.part.CommittedPosition() != end {
		m.Fatalf("position %d after Apply up to %d", tb.part.Position(), end)
	}
}

func asRows(changes []change) iter.Seq[state.Row] {
	return func(yield func(state.Row) bool) {
		for _, c := range changes {
			r := state.Row{Key: []byte(c.key), Time: c.row.time}
			if !c.deletes {
				r.Value = append([]byte{}, c.row.value...)
			}
			if !yield(r) {
				return
			}
		}
	}
}

func (m *model) close() {
	if m.db != nil {
		m.must(m.db.Close())
		m.db = nil
	}
}

// keys are few, so that they meet; some are longer than an entry holds inline.
var keys = []string{"", "a", "ab", "b", "b\x00", "b\xff", "exactly-16-bytes", "exactly-16-bytes+", strings.Repeat("long", 20), "\xff", "\xff\xff", strings.Repeat("x", 300)}

func key(t *rapid.T) string { return rapid.SampledFrom(keys).Draw(t, "key") }

func (m *model) table(t *rapid.T) *table { return rapid.SampledFrom(m.tables).Draw(t, "store") }

func (m *model) newRow(t *rapid.T) row {
	m.tick++
	return row{rapid.SampledFrom([]string{"", "x", "yy", strings.Repeat("z", 100)}).Draw(t, "value") + fmt.Sprint(m.tick%3), m.tick}
}

func (tb *table) change(key string, r row, deletes bool) {
	if deletes {
		delete(tb.now, key)
	} else {
		tb.now[key] = r
	}
	if !slices.Contains(tb.order, key) {
		tb.order = append(tb.order, key)
	}
}

func (m *model) put(t *rapid.T) {
	tb, k, r := m.table(t), key(t), m.newRow(t)
	m.must(tb.kv.Put(k, r.value, r.time))
	tb.change(k, r, false)
}

func (m *model) remove(t *rapid.T) {
	tb, k := m.table(t), key(t)
	m.tick++
	m.must(tb.kv.Delete(k, m.tick))
	if _, ok := tb.now[k]; ok {
		tb.change(k, row{}, true)
	}
}

func (m *model) findSet(t *rapid.T) {
	tb, k, r := m.table(t), key(t), m.newRow(t)
	ref, v, at, ok, err := tb.kv.Find(k)
	m.must(err)
	m.wantRow(tb, k, v, at, ok)
	tb.kv.Set(ref, r.value, r.time)
	tb.change(k, r, false)
	if rapid.Bool().Draw(t, "then remove") {
		tb.kv.Remove(ref, r.time)
		tb.change(k, row{}, true)
	}
}

func (m *model) ifAbsent(t *rapid.T) {
	tb, k, r := m.table(t), key(t), m.newRow(t)
	v, at, ok, err := tb.kv.PutIfAbsent(k, r.value, r.time)
	m.must(err)
	m.wantRow(tb, k, v, at, ok)
	if !ok {
		tb.change(k, r, false)
	}
}

func (m *model) get(t *rapid.T) {
	tb, k := m.table(t), key(t)
	v, at, ok, err := tb.kv.Get(k)
	m.must(err)
	m.wantRow(tb, k, v, at, ok)
}

func (m *model) wantRow(tb *table, key, v string, at int64, ok bool) {
	m.Helper()
	want, has := tb.now[key]
	if ok != has || (row{v, at}) != want {
		m.Fatalf("%s: %q is %q at %d (%v), want %q at %d (%v)", tb.name, key, v, at, ok, want.value, want.time, has)
	}
}

func (m *model) setMeta(t *rapid.T) {
	name := rapid.SampledFrom([]string{"time", "late"}).Draw(t, "meta")
	m.tick++
	m.db.SetMeta(name, m.tick)
	m.meta[name] = m.tick
}

func (m *model) setMark(*rapid.T) {
	m.db.Mark()
	for _, tb := range m.tables {
		tb.mark, tb.markOrder = maps.Clone(tb.now), slices.Clone(tb.order)
	}
	m.metaMark = maps.Clone(m.meta)
}

func (m *model) undo(*rapid.T) {
	m.db.Undo()
	for _, tb := range m.tables {
		tb.now, tb.order = maps.Clone(tb.mark), slices.Clone(tb.markOrder)
	}
	m.meta = maps.Clone(m.metaMark)
}

// commit writes the changes to the changelogs, like a transaction.
func (m *model) commit(t *rapid.T) {
	var seen []string
	err := m.db.Changes(func(p *state.Part, key, value []byte, at int64) error {
		i := slices.IndexFunc(m.tables, func(tb *table) bool { return tb.part == p })
		m.tables[i].log = append(m.tables[i].log, change{string(key), row{string(value), at}, value == nil})
		seen = append(seen, p.Name()+"/"+string(key))
		return nil
	})
	m.must(err)
	var want []string
	for _, tb := range m.tables {
		for _, k := range tb.order {
			_, had := tb.committed[k]
			_, has := tb.now[k]
			if had || has {
				want = append(want, tb.name+"/"+k)
			}
		}
	}
	if !slices.Equal(seen, want) {
		m.Fatalf("changes were %q, want %q", seen, want)
	}
	m.db.Committed(func(p *state.Part) (int64, bool) {
		i := slices.IndexFunc(m.tables, func(tb *table) bool { return tb.part == p })
		return int64(len(m.tables[i].log)), true
	})
	for _, tb := range m.tables {
		tb.committed = tb.fold(int64(len(tb.log)))
		if !maps.Equal(tb.committed, tb.now) {
			m.Fatalf("%s: the changelog says %v, the model %v", tb.name, tb.committed, tb.now)
		}
		tb.mark, tb.order, tb.markOrder = maps.Clone(tb.now), nil, nil
	}
	m.metaCommitted, m.metaMark = maps.Clone(m.meta), maps.Clone(m.meta)
	m.metaLog = append(m.metaLog, maps.Clone(m.meta))
	if m.db.DirtyBytes() != 0 {
		m.Fatalf("%d dirty bytes after a commit", m.db.DirtyBytes())
	}
}

func (m *model) persist(t *rapid.T) {
	w := m.db.Persist()
	if m.write != nil {
		if w != nil {
			m.Fatal("a second Write beside one under way")
		}
		return
	}
	if w == nil {
		if n := m.db.PendingBytes(); n != 0 {
			m.Fatalf("nothing to store, %d bytes pending", n)
		}
		return
	}
	m.write, m.written, m.writePos, m.writeMeta = w, false, nil, maps.Clone(m.metaCommitted)
	for _, tb := range m.tables {
		m.writePos = append(m.writePos, int64(len(tb.log)))
	}
}

func (m *model) writeOut(t *rapid.T) {
	if m.write == nil || m.written {
		return
	}
	bad := rapid.IntRange(0, 5).Draw(t, "disk")
	m.engine.before, m.engine.after = bad == 1, bad == 2
	m.writeErr, m.written = m.write.Commit(), true
	if (m.writeErr != nil) != (bad == 1 || bad == 2) {
		m.Fatalf("Commit: %v", m.writeErr)
	}
}

func (m *model) persisted(t *rapid.T) {
	if m.write == nil || !m.written {
		return
	}
	m.db.Persisted(m.write, m.writeErr)
	for i, tb := range m.tables {
		if m.writeErr == nil {
			tb.stored = m.writePos[i]
		}
		if tb.part.Position() != tb.stored {
			m.Fatalf("%s: position %d, want %d", tb.name, tb.part.Position(), tb.stored)
		}
	}
	if m.writeErr == nil {
		m.metaStored = m.writeMeta
	}
	m.write = nil
}

func (m *model) rewind(t *rapid.T) {
	m.must(m.db.Rewind())
	if w := m.write; w != nil {
		if !m.written {
			if err := w.Commit(); !errors.Is(err, state.ErrRewound) {
				m.Fatalf("a rewound Write: %v", err)
			}
		}
		m.db.Persisted(w, m.writeErr) // comes late and is ignored
		m.write = nil
	}
	if m.db.DirtyBytes()+m.db.PendingBytes() != 0 {
		m.Fatal("bytes are left after a rewind")
	}
	m.checkStored()
	m.restore()
}

func (m *model) flush(*rapid.T) {
	m.must(m.db.Flush())
	m.flushed()
}

func (m *model) flushed() {
	for _, tb := range m.tables {
		tb.flushed = tb.stored
	}
	m.metaFlushed = m.metaStored
}

func (m *model) reopen(*rapid.T) {
	m.flushed()
	m.close()
	m.open()
}

func (m *model) crash(t *rapid.T) {
	if !m.disk.Crash(rapid.Uint64().Draw(t, "choice")) {
		return
	}
	m.db = nil
	m.open()
}

// wantRows reads all rows of a store in both directions and in a stretch.
func (m *model) wantRows(tb *table, want map[string]row) {
	m.Helper()
	sorted := slices.Sorted(maps.Keys(want))
	m.wantSeq(tb.name+" forward", tb.kv.All(), sorted, want)
	back := slices.Clone(sorted)
	slices.Reverse(back)
	m.wantSeq(tb.name+" backward", tb.kv.Backward().All(), back, want)
}

func (m *model) wantSeq(what string, rows state.Rows[string, string], keys []string, want map[string]row) {
	m.Helper()
	i := 0
	for r, err := range rows {
		m.must(err)
		if i >= len(keys) {
			m.Fatalf("%s: a row %q too many, want %q", what, r.Key, keys)
		}
		if w := want[keys[i]]; r.Key != keys[i] || r.Value != w.value || !r.Time.Equal(time.UnixMilli(w.time)) {
			m.Fatalf("%s: row %d is %q=%q at %d, want %q=%v", what, i, r.Key, r.Value, r.Time.UnixMilli(), keys[i], w)
		}
		i++
	}
	if i != len(keys) {
		m.Fatalf("%s: %d rows, want %q", what, i, keys)
	}
}

// scan reads stretches of the open transaction's rows.
func (m *model) scan(t *rapid.T) {
	tb := m.table(t)
	m.wantRows(tb, tb.now)
	from, to := key(t), key(t)
	m.wantStretch(tb, tb.now, tb.kv.Range(from, to), false, func(k string) bool { return k >= from && k <= to })
	m.wantStretch(tb, tb.now, tb.kv.Backward().Range(from, to), true, func(k string) bool { return k >= from && k <= to })
	m.wantStretch(tb, tb.now, tb.kv.From(from), false, func(k string) bool { return k >= from })
	m.wantStretch(tb, tb.now, tb.kv.Backward().To(to), true, func(k string) bool { return k <= to })
	m.wantStretch(tb, tb.now, tb.kv.Prefix([]byte(from)), false, func(k string) bool { return strings.HasPrefix(k, from) })
	m.wantStretch(tb, tb.now, tb.kv.Backward().Prefix([]byte(from)), true, func(k string) bool { return strings.HasPrefix(k, from) })
}

func (m *model) wantStretch(tb *table, all map[string]row, rows state.Rows[string, string], backward bool, in func(string) bool) {
	m.Helper()
	var ks []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if in(k) {
			ks = append(ks, k)
		}
	}
	if backward {
		slices.Reverse(ks)
	}
	m.wantSeq(tb.name+" stretch", rows, ks, all)
}

// walk changes rows while it reads them.
func (m *model) walk(t *rapid.T) {
	tb := m.table(t)
	backward := rapid.Bool().Draw(t, "backward")
	rows := tb.kv.All()
	if backward {
		rows = tb.kv.Backward().All()
	}
	last, begun, left := "", false, 20
	// due is the next key of the model behind last.
	due := func() (string, bool) {
		ks := slices.Sorted(maps.Keys(tb.now))
		if backward {
			slices.Reverse(ks)
		}
		for _, k := range ks {
			if !begun || (k > last) != backward && k != last {
				return k, true
			}
		}
		return "", false
	}
	for r, err := range rows {
		m.must(err)
		want, ok := due()
		if !ok || r.Key != want || (row{r.Value, r.Time.UnixMilli()}) != tb.now[want] {
			m.Fatalf("%s: a walk came to %q, want %q (%v)", tb.name, r.Key, want, ok)
		}
		last, begun = r.Key, true
		if left--; left == 0 {
			return
		}
		switch rapid.IntRange(0, 7).Draw(t, "in the walk") {
		case 0, 1:
			m.put(t)
		case 2, 3:
			m.remove(t)
		case 4:
			m.writeOut(t)
			m.persisted(t)
		case 5:
			m.get(t)
		}
	}
	if k, ok := due(); ok {
		m.Fatalf("%s: a walk ended before %q", tb.name, k)
	}
}

func (m *model) view(t *rapid.T) {
	tb := m.table(t)
	v := tb.kv.View()
	k := key(t)
	got, at, ok, err := v.Get(k)
	m.must(err)
	if want, has := tb.committed[k]; ok != has || (row{got, at}) != want {
		m.Fatalf("%s: a view has %q at %d (%v) of %q, want %v (%v)", tb.name, got, at, ok, k, want, has)
	}
	m.wantSeq(tb.name+" view", v.All(), slices.Sorted(maps.Keys(tb.committed)), tb.committed)
	to := key(t)
	m.wantStretch(tb, tb.committed, v.Range(k, to), false, func(x string) bool { return x >= k && x <= to })
	n, err := v.Len()
	m.must(err)
	if n != int64(len(tb.committed)) {
		m.Fatalf("%s: a view has %d rows, want %d", tb.name, n, len(tb.committed))
	}
}

func (m *model) changed(t *rapid.T) {
	tb := m.table(t)
	var seen, want []string
	err := tb.kv.Changed(func(c state.Changed[string, string]) error {
		seen = append(seen, c.Key)
		old, had := tb.committed[c.Key]
		now, has := tb.now[c.Key]
		if c.OldOK != had || c.OK != has || (row{c.Old, c.OldTime}) != old || has && (row{c.New, c.Time}) != now {
			m.Fatalf("%s: changed %+v, want %v (%v), %v (%v)", tb.name, c, old, had, now, has)
		}
		return nil
	})
	m.must(err)
	for _, k := range tb.order {
		_, had := tb.committed[k]
		_, has := tb.now[k]
		if had || has {
			want = append(want, k)
		}
	}
	if !slices.Equal(seen, want) {
		m.Fatalf("%s: changed %q, want %q", tb.name, seen, want)
	}
}

func (m *model) length(t *rapid.T) {
	tb := m.table(t)
	if n := tb.kv.Len(); n != int64(len(tb.now)) {
		m.Fatalf("%s: %d rows, want %d", tb.name, n, len(tb.now))
	}
}

func (m *model) checkAll() {
	for _, tb := range m.tables {
		for _, k := range keys {
			v, at, ok, err := tb.kv.Get(k)
			m.must(err)
			m.wantRow(tb, k, v, at, ok)
		}
		m.wantRows(tb, tb.now)
	}
	if got := m.db.Meta(); !maps.Equal(got, m.meta) {
		m.Fatalf("meta is %v, want %v", got, m.meta)
	}
}
