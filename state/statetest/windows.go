package statetest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// testWindows turns stores of windows, sessions and versions at random against
// plain maps, which are made from the changelog alone.
func testWindows(t *testing.T, fresh func(t testing.TB) Disk) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &windows{
			T: rt, disk: fresh(t), cache: rapid.SampledFrom([]int64{1, 400, 1 << 20}).Draw(rt, "cache"), tick: 1,
			tables: []*expiring{
				{name: "window", spec: state.Spec{Kind: state.KindWindow, Segment: 20}},
				{name: "by key", spec: state.Spec{Kind: state.KindWindowByKey, Segment: 20, ByTime: true}},
				{name: "session", spec: state.Spec{Kind: state.KindSession, Segment: 20, ByTime: true}},
				{name: "once", spec: state.Spec{Kind: state.KindWindowOnce, Segment: 20}},
			},
			versions: newVersions(),
		}
		m.open()
		defer m.close()
		rt.Repeat(map[string]func(*rapid.T){
			"put":        m.put,
			"delete":     m.remove,
			"add":        m.add,
			"expire":     m.expire,
			"version":    m.putVersion,
			"version2":   m.putVersion,
			"mark":       m.setMark,
			"undo":       m.undo,
			"commit":     m.commit,
			"commit2":    m.commit,
			"persist":    m.persist,
			"write":      m.writeOut,
			"persisted":  m.persisted,
			"rewind":     m.rewind,
			"flush":      func(*rapid.T) { m.must(m.db.Flush()) },
			"reopen":     func(*rapid.T) { m.close(); m.open() },
			"crash":      m.crash,
			"read":       m.read,
			"walk":       m.walk,
			"readKey":    m.readKey,
			"changed":    m.changed,
			"view":       m.view,
			"asOf":       m.asOf,
			"viewOfAsOf": m.viewAsOf,
			"elsewhere":  m.elsewhere,
		})
		m.checkAll()
	})
}

// place is where a row is: a window begins at at, a session ends there.
type place struct {
	key       string
	at, start int64 // start of sessions only
	seq       uint32
}

// expiring is a store of the model.
type expiring struct {
	name string
	spec state.Spec
	part *state.Part
	w    *state.Window[string, string]
	s    *state.Session[string, string]

	log                    []state.Row // offset 0 is its first record
	now, mark, committed   map[place]row
	closing                map[place]row // while its transaction is neither open nor committed
	closingBound           int64
	order, markOrder       []place // in order of first change
	bound, markBound, gone int64   // gone is the committed bound, which outlives the store
	viewed                 int64   // the committed bound as the store knows it
	seq, markSeq           uint32
}

type windows struct {
	*rapid.T
	disk     Disk
	engine   *flaky
	db       *state.DB
	cache    int64
	tick     int64
	tables   []*expiring
	versions *versions
	write    *state.Write
	written  bool
	writeErr error
}

func (m *windows) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

// tail is what stands behind the key in the changelog.
func (tb *expiring) logKey(p place) []byte {
	k := binary.BigEndian.AppendUint64([]byte(p.key), uint64(p.at))
	if tb.spec.Kind == state.KindSession {
		return binary.BigEndian.AppendUint64(k, uint64(p.start))
	}
	return binary.BigEndian.AppendUint32(k, p.seq)
}

func (tb *expiring) fromLogKey(k []byte) (p place) {
	if tb.spec.Kind == state.KindSession {
		n := len(k) - 16
		return place{key: string(k[:n]), at: int64(binary.BigEndian.Uint64(k[n:])), start: int64(binary.BigEndian.Uint64(k[n+8:]))}
	}
	n := len(k) - 12
	return place{key: string(k[:n]), at: int64(binary.BigEndian.Uint64(k[n:])), seq: binary.BigEndian.Uint32(k[n+8:])}
}

// compare is the store's order, byTime that by time.
func (tb *expiring) compare(a, b place) int {
	if tb.byStart() {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.key, b.key))
	}
	return cmp.Or(cmp.Compare(a.at/tb.spec.Segment, b.at/tb.spec.Segment), bytes.Compare(tb.logKey(a), tb.logKey(b)))
}

func (tb *expiring) byTime(a, b place) int {
	if tb.spec.Kind == state.KindWindowByKey {
		num := func(p place) []byte { return binary.BigEndian.AppendUint32([]byte(p.key), p.seq) }
		return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(num(a), num(b)))
	}
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.start, b.start), strings.Compare(a.key, b.key))
}

// fold is the changelog up to pos.
func (tb *expiring) fold(pos int64) map[place]row {
	out := map[place]row{}
	for _, r := range tb.log[:pos] {
		for p, r := range tb.logged(r) {
			if r == nil {
				delete(out, p)
			} else {
				out[p] = *r
			}
		}
	}
	return out
}

// logged are the rows of a record, nil for a delete.
func (tb *expiring) logged(r state.Row) iter.Seq2[place, *row] {
	first := tb.fromLogKey(r.Key)
	return func(yield func(place, *row) bool) {
		switch {
		case tb.once():
			unbundle(first, r, yield)
		case r.Value == nil:
			yield(first, nil)
		default:
			yield(first, &row{string(r.Value), r.Time})
		}
	}
}

// unbundle takes many rows out of a record of a store whose rows are put once.
func unbundle(first place, r state.Row, yield func(place, *row) bool) {
	b := r.Value
	sized := func() string {
		n, size := binary.Uvarint(b)
		s := string(b[size : size+int(n)])
		b = b[size+int(n):]
		return s
	}
	number := func() int64 {
		n, size := binary.Varint(b)
		b = b[size:]
		return n
	}
	at := int64(binary.BigEndian.Uint64(b))
	b = b[8:]
	latest := at
	p, v := first, row{sized(), at}
	for yield(p, &v) && len(b) > 0 {
		p = place{key: sized(), at: first.at + number()}
		v = row{time: at + number()}
		v.value = sized()
		latest = max(latest, v.time)
	}
	if len(b) == 0 && r.Time != latest {
		panic(fmt.Sprintf("a record of time %d with a row of time %d", r.Time, latest))
	}
}

// byStart: rows are in order of time.
func (tb *expiring) byStart() bool {
	return tb.spec.Kind == state.KindWindow || tb.spec.Kind == state.KindWindowOnce
}

// once: rows are neither changed nor deleted.
func (tb *expiring) once() bool { return tb.spec.Kind == state.KindWindowOnce }

// open opens the disk and restores what it lacks, as a task does.
func (m *windows) open() {
	e, err := m.disk.Open()
	m.must(err)
	m.engine = &flaky{Engine: e}
	m.db = m.openOn(m.engine)
	m.write = nil
	m.openStores()
	for _, tb := range m.tables {
		m.checkStored(tb)
	}
	m.restore()
}

// checkStored is the promise: the engine's rows are the changelog's up to its
// position, but of those that have expired some may be missing.
func (m *windows) checkStored(tb *expiring) {
	want := tb.fold(tb.part.Position())
	got := map[found]bool{}
	rows := func(yield func(found, error) bool) {
		if tb.s != nil {
			ofSessions(tb.s.All())(yield)
		} else {
			ofWindows(tb.w.All())(yield)
		}
	}
	for r, err := range rows {
		m.must(err)
		got[r] = true
	}
	for p, r := range want {
		p.seq = 0 // a row does not tell it, but no two have one value and time
		f := found{p, r}
		if !got[f] && p.at >= tb.gone {
			m.Fatalf("%s: %v is not stored up to %d", tb.name, f, tb.part.Position())
		}
		delete(got, f)
	}
	if len(got) > 0 {
		m.Fatalf("%s: stored up to %d are %v too many", tb.name, tb.part.Position(), got)
	}
}

func (m *windows) openOn(e state.Engine) *state.DB {
	var specs []state.Spec
	for _, tb := range m.tables {
		tb.spec.Name = tb.name
		specs = append(specs, tb.spec)
	}
	specs = append(specs, state.Spec{Name: "versions", Kind: state.KindVersioned, History: history})
	db, err := state.Open(e, state.Options{Stores: specs, CacheBytes: m.cache})
	m.must(err)
	return db
}

func (m *windows) openStores() {
	var err error
	for _, tb := range m.tables {
		tb.part, tb.viewed = m.db.Part(tb.name), 0
		if tb.spec.Kind == state.KindSession {
			tb.s, err = state.OpenSession(m.db, tb.name, codec.String, codec.String)
		} else {
			tb.w, err = state.OpenWindow(m.db, tb.name, codec.String, codec.String)
		}
		m.must(err)
	}
	m.versions.part, m.versions.viewed = m.db.Part("versions"), math.MinInt64
	m.versions.s, err = state.OpenVersioned(m.db, "versions", codec.String, codec.String, history)
	m.must(err)
}

// restore applies the rest of the changelogs and sets the times that the
// transaction kept. The bound may come before.
func (m *windows) restore() {
	for _, tb := range m.tables {
		before := rapid.Bool().Draw(m.T, "bound first")
		if before {
			tb.expire(tb.gone)
		}
		if rapid.IntRange(0, 9).Draw(m.T, "reset") == 0 {
			m.must(tb.part.Reset())
		}
		m.must(tb.part.Apply(slices.Values(tb.log[tb.part.Position():]), int64(len(tb.log))))
		if !before {
			tb.expire(tb.gone)
		}
		tb.committed = tb.fold(int64(len(tb.log)))
		tb.now, tb.mark, tb.bound, tb.markBound = maps.Clone(tb.committed), maps.Clone(tb.committed), tb.gone, tb.gone
		tb.order, tb.markOrder = nil, nil
		tb.seq = 0
		for _, r := range tb.log {
			tb.seq = max(tb.seq, tb.fromLogKey(r.Key).seq) // of the others it is 0
		}
		tb.markSeq = tb.seq
	}
	m.versions.restore(m)
	m.db.Mark()
	m.checkAll()
}

func (tb *expiring) expire(before int64) {
	if tb.s != nil {
		tb.s.Expire(before)
	} else {
		tb.w.Expire(before)
	}
}

func (m *windows) close() {
	if m.db != nil {
		m.must(m.db.Close())
		m.db = nil
	}
}

func (m *windows) table(t *rapid.T) *expiring { return rapid.SampledFrom(m.tables).Draw(t, "store") }

// windowKeys meet each other: some are others with what looks like a time.
var windowKeys = []string{"", "a", "a\x00\x00\x00\x00\x00\x00\x00\x05", "a\x00", "b", "b\x00\x00\x00\x00\x00\x00\x00\x1e\x00\x00\x00\x00\x00\x00\x00\x05zzzz", "\xff\xff", "exactly-16-bytes+"}

func drawPlace(t *rapid.T, tb *expiring) place {
	p := place{key: rapid.SampledFrom(windowKeys).Draw(t, "key"), at: rapid.Int64Range(0, 100).Draw(t, "at")}
	if tb.spec.Kind == state.KindSession {
		p.start = rapid.Int64Range(max(0, p.at-30), p.at).Draw(t, "start")
	}
	return p
}

func (tb *expiring) change(p place, r row, deletes bool) {
	if deletes {
		delete(tb.now, p)
	} else {
		tb.now[p] = r
	}
	if !slices.Contains(tb.order, p) {
		tb.order = append(tb.order, p)
	}
}

func (m *windows) newRow() row {
	m.tick++
	return row{fmt.Sprint("v", m.tick), m.tick}
}

func (m *windows) put(t *rapid.T) {
	tb := m.table(t)
	p, r := drawPlace(t, tb), m.newRow()
	if _, ok := tb.now[p]; ok && tb.once() {
		return
	}
	if tb.s != nil {
		m.must(tb.s.Put(p.key, p.start, p.at, r.value, r.time))
	} else {
		m.must(tb.w.Put(p.key, p.at, r.value, r.time))
	}
	if p.at >= tb.bound {
		tb.change(p, r, false)
	}
}

func (m *windows) remove(t *rapid.T) {
	tb := m.table(t)
	p := drawPlace(t, tb)
	if _, ok := tb.now[p]; ok && tb.once() {
		return
	}
	m.tick++
	if tb.s != nil {
		m.must(tb.s.Delete(p.key, p.start, p.at, m.tick))
	} else {
		m.must(tb.w.Delete(p.key, p.at, m.tick))
	}
	if _, ok := tb.now[p]; ok && p.at >= tb.bound {
		tb.change(p, row{}, true)
	}
}

func (m *windows) add(t *rapid.T) {
	tb := m.tables[1]
	p, r := drawPlace(t, tb), m.newRow()
	m.must(tb.w.Add(p.key, p.at, r.value, r.time))
	if p.at >= tb.bound {
		tb.seq++
		p.seq = tb.seq
		tb.change(p, r, false)
	}
}

func (m *windows) expire(t *rapid.T) {
	tb := m.table(t)
	before := rapid.Int64Range(0, 90).Draw(t, "before")
	tb.expire(before)
	tb.bound = max(tb.bound, before)
}

func (m *windows) setMark(*rapid.T) {
	m.db.Mark()
	for _, tb := range m.tables {
		tb.mark, tb.markOrder, tb.markBound, tb.markSeq = maps.Clone(tb.now), slices.Clone(tb.order), tb.bound, tb.seq
	}
	m.versions.setMark()
}

func (m *windows) undo(*rapid.T) {
	m.db.Undo()
	for _, tb := range m.tables {
		tb.now, tb.order, tb.bound, tb.seq = maps.Clone(tb.mark), slices.Clone(tb.markOrder), tb.markBound, tb.markSeq
	}
	m.versions.undo()
}

// commit writes the changes to the changelogs, like a transaction.
func (m *windows) commit(t *rapid.T) {
	var seen []string
	m.must(m.db.Changes(func(p *state.Part, key, value []byte, at int64) error {
		r := state.Row{Key: bytes.Clone(key), Time: at}
		if value != nil {
			r.Value = append([]byte{}, value...)
		}
		if p == m.versions.part {
			m.versions.logged(r)
			return nil
		}
		i := slices.IndexFunc(m.tables, func(tb *expiring) bool { return tb.part == p })
		tb := m.tables[i]
		tb.log = append(tb.log, r)
		for at := range tb.logged(r) {
			seen = append(seen, p.Name()+"/"+string(tb.logKey(at)))
		}
		return nil
	}))
	var want []string
	for _, tb := range m.tables {
		for _, p := range tb.order {
			_, had := tb.committed[p]
			if _, has := tb.now[p]; had || has {
				want = append(want, tb.name+"/"+string(tb.logKey(p)))
			}
		}
	}
	if !slices.Equal(seen, want) {
		m.Fatalf("changes were %q, want %q", seen, want)
	}
	m.versions.checkLog(m)
	for _, tb := range m.tables {
		tb.closing, tb.closingBound = tb.fold(int64(len(tb.log))), tb.bound
		if !maps.Equal(tb.closing, tb.now) {
			m.Fatalf("%s: the changelog says %v, the model %v", tb.name, tb.closing, tb.now)
		}
		tb.mark, tb.order, tb.markOrder = maps.Clone(tb.now), nil, nil
		tb.markBound, tb.markSeq = tb.bound, tb.seq
	}
	m.versions.freeze()
	if rapid.Bool().Draw(t, "freeze") {
		m.db.Freeze()
		m.meanwhile(t)
	}
	m.db.Committed(func(p *state.Part) (int64, bool) {
		if p == m.versions.part {
			return int64(len(m.versions.log)), true
		}
		i := slices.IndexFunc(m.tables, func(tb *expiring) bool { return tb.part == p })
		return int64(len(m.tables[i].log)), true
	})
	for _, tb := range m.tables {
		tb.committed, tb.gone, tb.viewed = tb.closing, tb.closingBound, tb.closingBound
	}
	m.versions.commit()
}

// meanwhile is what happens while a transaction closes.
func (m *windows) meanwhile(t *rapid.T) {
	for range rapid.IntRange(0, 4).Draw(t, "meanwhile") {
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			m.put(t)
		case 1:
			m.remove(t)
		case 2:
			m.add(t)
		case 3:
			m.expire(t)
		case 4, 5:
			m.putVersion(t)
		case 6:
			m.undo(t)
		case 7:
			m.setMark(t)
		case 8:
			m.persist(t)
		case 9:
			m.view(t)
			m.viewAsOf(t)
		}
	}
}

func (m *windows) persist(*rapid.T) {
	if w := m.db.Persist(); w != nil {
		m.write, m.written = w, false
	}
}

func (m *windows) writeOut(t *rapid.T) {
	if m.write == nil || m.written {
		return
	}
	bad := rapid.IntRange(0, 5).Draw(t, "disk")
	m.engine.before, m.engine.after = bad == 1, bad == 2
	m.writeErr, m.written = m.write.Commit(), true
	m.engine.before, m.engine.after = false, false
}

func (m *windows) persisted(*rapid.T) {
	if m.write != nil && m.written {
		m.db.Persisted(m.write, m.writeErr)
		m.write = nil
	}
}

func (m *windows) rewind(*rapid.T) {
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
	m.restore()
}

func (m *windows) crash(t *rapid.T) {
	if m.disk.Crash(rapid.Uint64().Draw(t, "choice")) {
		m.db = nil
		m.open()
	}
}

// elsewhere restores everything into an empty engine and compares.
func (m *windows) elsewhere(*rapid.T) {
	db := m.openOn(state.NewMemory())
	defer func() { m.must(db.Close()) }()
	for _, tb := range m.tables {
		m.must(db.Part(tb.name).Apply(slices.Values(tb.log), int64(len(tb.log))))
		var got iter.Seq2[found, error]
		if tb.spec.Kind == state.KindSession {
			s, err := state.OpenSession(db, tb.name, codec.String, codec.String)
			m.must(err)
			s.Expire(tb.gone)
			got = ofSessions(s.All())
		} else {
			w, err := state.OpenWindow(db, tb.name, codec.String, codec.String)
			m.must(err)
			w.Expire(tb.gone)
			got = ofWindows(w.All())
		}
		m.wantRows(tb.name+" elsewhere", got, tb.visible(tb.committed, tb.gone, tb.compare, everything), tb.committed)
	}
	m.versions.elsewhere(m, db)
}
