package statetest

import (
	"iter"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// row is a row of the model, and a changelog record when it has a key.
type row struct {
	value string
	time  int64
}

// table is a store of the model: what it should hold in each of its states,
// all of it made from a changelog.
type table struct {
	name string
	kv   *state.KV[string, string]
	part *state.Part

	log       []change // offset 0 is its first record
	committed map[string]row
	closing   []change       // of the closing transaction, not in log
	base      map[string]row // what the open transaction began with
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
			"freeze":    m.freeze,
			"freeze2":   m.freeze,
			"end":       m.end,
			"end2":      m.end,
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
	frozen bool  // a transaction is closing

	meta, metaClosing, metaCommitted, metaMark map[string]int64
	metaLog                                    []map[string]int64 // after each commit
	metaStored, metaFlushed                    map[string]int64   // what the engine and the disk have at least

	write     *state.Write
	writePos  []int64
	writeMeta map[string]int64
	written   bool
	writeErr  error
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

// restore applies the rest of the changelogs, in two batches. A transaction
// that was closing may have been committed all the same.
func (m *model) restore() {
	if m.frozen && rapid.Bool().Draw(m.T, "the closing one is committed") {
		m.append()
	}
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
		tb.now, tb.mark, tb.base = maps.Clone(tb.committed), maps.Clone(tb.committed), maps.Clone(tb.committed)
		tb.order, tb.markOrder, tb.closing = nil, nil, nil
	}
	m.frozen = false
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

func (m *model) table(t *rapid.T) *table { return rapid.SampledFrom(m.tables).Draw(t, "store") }
