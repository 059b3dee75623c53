package stream_test

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A joinModel is the plain definition of a stream-stream join: every record is
// kept in a list, and each new one is held against all. What the reference
// does wrong with late and unmatched records is replaced by what it says; it
// gives exactly the recorded results where nothing is wrong.
type joinModel struct {
	side          [2]string // topics: left, right
	reach         [2]int64  // how far after its own time a record of the side finds the other
	grace         int64
	keepsUnpaired [2]bool
	latest        int64
	kept          [2]int64   // the newest row of each side
	rows          []*joinRow // in order of arrival

	// forgets is of the reference: a row is gone from its store one millisecond
	// before the last record comes that could be its partner.
	forgets bool
}

type joinRow struct {
	side            int
	rec             goldenRecord
	matched, closed bool // closed: its result without a partner was sent
}

var joinWords = regexp.MustCompile(`^(\w+)\.(join|leftJoin|outerJoin)\((\w+), joiner, JoinWindows of (-?\d+) ms before and (-?\d+) ms after, grace (\d+) ms`)

// newJoinModel reads a topology that is such a join and nothing else.
func newJoinModel(tr *trace) (*joinModel, bool) {
	w := joinWords.FindStringSubmatch(tr.Topology)
	if w == nil {
		return nil, false
	}
	return &joinModel{
		side:          [2]string{w[1], w[3]},
		reach:         [2]int64{num(w[5]), num(w[4])},
		grace:         num(w[6]),
		keepsUnpaired: [2]bool{w[2] != "join", w[2] == "outerJoin"},
		latest:        -1,
		kept:          [2]int64{-1, -1},
	}, true
}

// take is a step: the results, and how many records were dropped.
func (m *joinModel) take(rec goldenRecord) (out []goldenRecord, dropped int) {
	row := &joinRow{side: slices.Index(m.side[:], rec.Topic), rec: rec}
	m.latest = max(m.latest, rec.Ts)
	switch {
	case rec.Value == nil, rec.Key == nil && !m.keepsUnpaired[row.side]:
		return nil, 1
	case rec.Key == nil:
		return []goldenRecord{row.alone()}, 0
	case m.over(row):
		return nil, 0 // not counted by the reference
	}
	// Only a record at the newest time looks for what is over.
	if rec.Ts == m.latest {
		out = m.closeRows()
	}
	out = append(out, m.pairs(row)...)
	m.rows = append(m.rows, row)
	m.kept[row.side] = max(m.kept[row.side], rec.Ts)
	return out, 0
}

// over says whether nothing that comes can still find a partner in row. In a
// window that is all before the row that is as soon as the row is late.
func (m *joinModel) over(row *joinRow) bool {
	return row.rec.Ts+max(m.reach[row.side], 0)+m.grace < m.latest
}

func (m *joinModel) closeRows() (out []goldenRecord) {
	var due []*joinRow
	for _, row := range m.rows {
		if m.keepsUnpaired[row.side] && !row.matched && !row.closed && m.over(row) {
			row.closed = true
			due = append(due, row)
		}
	}
	slices.SortStableFunc(due, func(a, b *joinRow) int {
		return cmp.Or(cmp.Compare(a.rec.Ts, b.rec.Ts), cmp.Compare(b.side, a.side), cmp.Compare(a.rec.Key.(string), b.rec.Key.(string)))
	})
	for _, row := range due {
		out = append(out, row.alone())
	}
	return out
}

func (m *joinModel) pairs(row *joinRow) (out []goldenRecord) {
	var found []*joinRow
	for _, other := range m.rows {
		if other.side != row.side && other.rec.Key == row.rec.Key && !other.closed && m.near(row, other) && !m.expired(other) {
			found = append(found, other)
		}
	}
	slices.SortStableFunc(found, func(a, b *joinRow) int { return cmp.Compare(a.rec.Ts, b.rec.Ts) })
	for _, other := range found {
		row.matched, other.matched = true, true
		out = append(out, row.with(other))
	}
	return out
}

// expired says whether the reference's store has forgotten the row.
func (m *joinModel) expired(row *joinRow) bool {
	return m.forgets && row.rec.Ts <= m.kept[row.side]-m.reach[0]-m.reach[1]-m.grace
}

func (m *joinModel) near(row, other *joinRow) bool {
	apart := other.rec.Ts - row.rec.Ts
	return -m.reach[other.side] <= apart && apart <= m.reach[row.side]
}

func (r *joinRow) alone() goldenRecord {
	return r.result(r.rec, goldenRecord{Value: "null"}, r.rec.Ts)
}

func (r *joinRow) with(other *joinRow) goldenRecord {
	return r.result(r.rec, other.rec, max(r.rec.Ts, other.rec.Ts))
}

func (r *joinRow) result(own, other goldenRecord, ts int64) goldenRecord {
	if r.side == 1 {
		own, other = other, own
	}
	return goldenRecord{Topic: "out", Key: r.rec.Key, Value: own.Value.(string) + "+" + other.Value.(string), Ts: ts}
}

// asJoined replaces the results of a join by what the definition gives.
func asJoined(tr *trace) {
	m, ok := newJoinModel(tr)
	if !ok {
		panic("no stream-stream join alone: " + tr.Topology)
	}
	for i := range tr.Steps {
		if s := &tr.Steps[i]; s.In != nil {
			s.Out, s.Dropped = m.take(*s.In)
		}
	}
}

func TestTheDefinitionOfAJoinGivesWhatTheReferenceGaveWhereNothingIsWrong(t *testing.T) {
	n := 0
	for _, tr := range allTraces(t) {
		if m, ok := newJoinModel(&tr); ok && tr.Defect == nil {
			n++
			m.forgets = true
			for i, s := range tr.Steps {
				out, dropped := m.take(*s.In)
				got, want := fmt.Sprint(out, dropped), fmt.Sprint(s.Out, s.Dropped)
				if got != want {
					t.Errorf("%s, step %d: got %s, want %s", tr.Name, i, got, want)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no such traces")
	}
}

// Where a trace shows a fault, all results are the same but those of the
// records that have to do with it: late ones, those of tagged results, and
// those that are sent alone at another time.
func TestTheDefinitionOfAJoinDiffersFromTheReferenceOnlyWhereATraceSaysSo(t *testing.T) {
	for _, tr := range allTraces(t) {
		m, ok := newJoinModel(&tr)
		if !ok || tr.Defect == nil {
			continue
		}
		m.forgets = true
		touched := map[string]bool{}
		var got [][]goldenRecord
		for _, s := range tr.Steps {
			n := len(m.rows)
			out, _ := m.take(*s.In)
			got = append(got, out)
			if len(m.rows) == n {
				touched[half(s.In.Key, s.In.Value)] = true
			}
		}
		for i, s := range tr.Steps {
			for _, o := range append(slices.Clone(got[i]), s.Out...) {
				if alone := strings.Contains(o.Value.(string), "null"); o.Defect != "" || alone {
					for h := range strings.SplitSeq(o.Value.(string), "+") {
						touched[half(o.Key, h)] = true
					}
				}
			}
		}
		for i, s := range tr.Steps {
			if got, want := untouched(got[i], touched), untouched(s.Out, touched); !slices.Equal(got, want) {
				t.Errorf("%s, step %d: got %q, want %q", tr.Name, i, got, want)
			}
		}
	}
}

func half(key, value any) string { return fmt.Sprint(key, " ", value) }

func untouched(recs []goldenRecord, touched map[string]bool) (all []string) {
	for _, o := range recs {
		l, r, _ := strings.Cut(o.Value.(string), "+")
		if !touched[half(o.Key, l)] && !touched[half(o.Key, r)] {
			all = append(all, fmt.Sprint(o.Key, o.Value, o.Ts))
		}
	}
	return all
}

// ownHeaders gives the results of a left join that have no partner the headers
// of the record that they are made of.
func ownHeaders(tr *trace) {
	for i := range tr.Steps {
		for j := range tr.Steps[i].Out {
			o := &tr.Steps[i].Out[j]
			alone, ok := strings.CutSuffix(fmt.Sprint(o.Value), "+null")
			if !ok {
				continue
			}
			for _, s := range tr.Steps[:i+1] {
				if s.In.Key == o.Key && s.In.Value == alone && s.In.Ts == o.Ts {
					o.Headers = s.In.Headers
				}
			}
		}
	}
}

func TestOwnHeadersFindsTheRecordOfAResult(t *testing.T) {
	from := func(name string) [][2]*string { h := "from"; return [][2]*string{{&h, &name}} }
	tr := &trace{Steps: []goldenStep{
		{In: &goldenRecord{Key: "a", Value: "x", Ts: 1, Headers: from("a")}},
		{
			In: &goldenRecord{Key: "b", Value: "y", Ts: 2, Headers: from("b")},
			Out: []goldenRecord{
				{Key: "a", Value: "x+null", Ts: 1, Headers: from("b")},
				{Key: "b", Value: "z+y", Ts: 2, Headers: from("b")},
			},
		},
	}}
	ownHeaders(tr)
	for j, want := range []string{"a", "b"} {
		if got := *tr.Steps[1].Out[j].Headers[0][1]; got != want {
			t.Errorf("result %d has the headers of %s, want %s", j, got, want)
		}
	}
}
