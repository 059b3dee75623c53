package stream

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// remembering puts each value in a store, deletes for "-", tells all rows for
// "?", and fails behind a put for "DEL".
func remembering(opts ...KeyValueOption) func(*Builder) {
	return func(b *Builder) {
		store := b.Store("rows", codec.String, codec.String, opts...)
		b.Stream(texts).Process(func(c *textContext, r Record[string, string]) error {
			rows := store.In(c)
			switch {
			case r.NoKey:
				return nil
			case r.Value == "-":
				return rows.Delete(r.Key)
			case r.Value == "DEL":
				return errors.Join(rows.Put("new", "x"), rows.Put(r.Key, "x"), errors.New("no"))
			case r.Value != "?":
				return rows.Put(r.Key, r.Value)
			}
			var all []string
			for e, err := range rows.All() {
				if err != nil {
					return err
				}
				all = append(all, e.Key+"="+e.Value)
			}
			return c.Emit(rec("rows", strings.Join(all, " "), r.Time.UnixMilli()))
		}, Uses(store)).To(out)
	}
}

func TestRowsGoWhenTheirTTLIsOver(t *testing.T) {
	r := newRig(t, remembering(TTL(10*ms)))
	send(r, texts, rec("a", "x", 1), rec("b", "y", 5), rec("", "?", 10), rec("", "?", 11))
	expect(r, out, "rows=a=x b=y@10", "rows=b=y@11")
	// A late record's row is as old as the record, and a row's time never falls.
	send(r, texts, rec("a", "z", 2), rec("c", "w", 1), rec("b", "q", 3), rec("", "?", 3), rec("", "?", 12), rec("", "?", 14), rec("", "?", 15))
	expect(r, out, "rows=a=z b=q@3", "rows=b=q@12", "rows=b=q@14", "rows=@15")
	// A row that is deleted and made again begins anew.
	send(r, texts, rec("a", "x", 20), rec("a", "-", 21), rec("a", "y", 15), rec("", "?", 25))
	expect(r, out, "rows=@25")
}

func TestTheOldestRowsGoWhenThereAreTooMany(t *testing.T) {
	r := newRig(t, remembering(MaxKeys(2)))
	send(r, texts, rec("b", "1", 1), rec("a", "1", 1), rec("c", "1", 9), rec("", "?", 9))
	expect(r, out, "rows=b=1 c=1@9")
	send(r, texts, rec("d", "1", 0), rec("b", "2", 0), rec("c", "2", 10), rec("", "?", 10)) // d is older than all
	expect(r, out, "rows=b=2 c=2@10")
	send(r, texts, rec("e", "1", 12), rec("", "?", 12))
	expect(r, out, "rows=c=2 e=1@12")

	r = newRig(t, remembering(MaxBytes(6)))
	send(r, texts, rec("a", "12", 1), rec("b", "12", 2), rec("", "?", 2), rec("a", "1234", 3), rec("", "?", 3))
	expect(r, out, "rows=a=12 b=12@2", "rows=a=1234@3")
}

func TestTheTimeOfAStoreWithTTLIsThatOfItsProcessorsRecords(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		remembering(TTL(10*ms), InMemory())(b)
		b.Stream(texts2).Merge(b.Stream(texts)).To(out2)
	})
	send(r, texts, rec("a", "x", 1))
	send(r, texts2, rec("a", "x", 50)) // does not come there
	send(r, texts, del[string]("a", 60), rec("", "?", 10))
	expect(r, out, "rows=a=x@10")
}

func TestExpiredRowsAreDeletesInTheChangelogOfTheSameTransaction(t *testing.T) {
	r := newRig(t, remembering(TTL(10*ms)))
	send(r, texts, rec("a", "x", 1), rec("b", "y", 2))
	r.commit()
	send(r, texts, rec("c", "z", 11))
	r.commit()
	log := r.sorted()[0].log["rows"]
	if r.writes["rows"] != 2 || len(log) != 4 || !slices.ContainsFunc(log[2:], func(row state.Row) bool {
		return string(row.Key) == "a" && row.Value == nil && row.Time == 11
	}) {
		t.Errorf("the changelog has %v", log)
	}
	r.move() // the time of the store comes back too: the row at 1 would be forgotten again
	send(r, texts, rec("a", "x", 1), rec("", "?", 3))
	expect(r, out, "rows=b=y c=z@3")
}

// The store and its changelog hold the rows of one TTL, however many came, and a
// restore brings back no more.
func TestDED06RowsThatExpireAreBoundedAndDoNotComeBack(t *testing.T) {
	r := newRig(t, remembering(TTL(100*ms)))
	for i := range int64(1000) {
		send(r, texts, rec(fmt.Sprint("id-", i), "x", i))
		if i%50 == 0 {
			r.commit()
		}
	}
	r.commit()
	folded := map[string]bool{}
	for _, row := range r.sorted()[0].log["rows"] {
		if row.Value == nil {
			delete(folded, string(row.Key))
		} else {
			folded[string(row.Key)] = true
		}
	}
	r.move()
	kv, err := state.OpenKV(r.sorted()[0].db, "rows", codec.String, codec.String)
	r.must(err)
	if kv.Len() != 100 || len(folded) != 100 || folded["id-899"] || !folded["id-900"] {
		t.Errorf("%d rows, %d in the changelog", kv.Len(), len(folded))
	}
}

// An agingModel is such a store by its definition.
type agingModel struct {
	aging
	now  int64
	rows map[string]timed[string]
}

func (m *agingModel) add(r Record[string, string]) {
	ms := r.Time.UnixMilli()
	m.now = max(m.now, ms)
	if m.ttl > 0 {
		maps.DeleteFunc(m.rows, func(_ string, row timed[string]) bool { return row.ms <= m.now-m.ttl })
	}
	switch {
	case r.NoKey, r.Value == "?":
	case r.Value == "-":
		delete(m.rows, r.Key)
	default:
		m.rows[r.Key] = timed[string]{r.Value, max(m.rows[r.Key].ms, ms)}
	}
	for m.tooMany() {
		delete(m.rows, slices.MinFunc(slices.Collect(maps.Keys(m.rows)), func(a, b string) int {
			return cmp.Or(cmp.Compare(m.rows[a].ms, m.rows[b].ms), cmp.Compare(a, b))
		}))
	}
}

func (m *agingModel) tooMany() bool {
	bytes := int64(0)
	for k, row := range m.rows {
		bytes += int64(len(k) + len(row.v))
	}
	return m.maxKeys > 0 && len(m.rows) > m.maxKeys || m.maxBytes > 0 && bytes > m.maxBytes
}

func (m *agingModel) String() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m.rows)) {
		all = append(all, k+"="+m.rows[k].v)
	}
	return strings.Join(all, " ")
}

func TestStoresForgetWhatTheirDefinitionSaysWhateverIsAborted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &agingModel{rows: map[string]timed[string]{}}
		var opts []KeyValueOption
		if rapid.Bool().Draw(rt, "by time") {
			m.ttl = rapid.Int64Range(1, 20).Draw(rt, "ttl")
			opts = append(opts, TTL(time.Duration(m.ttl)*ms))
		}
		most := 1 // a store without any limit is another kind
		if m.ttl > 0 {
			most = 3
		}
		switch rapid.IntRange(0, most).Draw(rt, "by size") {
		case 0:
			m.maxKeys = rapid.IntRange(1, 4).Draw(rt, "keys")
			opts = append(opts, MaxKeys(m.maxKeys))
		case 1:
			m.maxBytes = rapid.Int64Range(1, 9).Draw(rt, "bytes")
			opts = append(opts, MaxBytes(m.maxBytes))
		}
		h := newHistory(t, remembering(opts...))
		h.policy = ErrorPolicy(Skip).runtime(rigApp)
		var now int64
		var want []string
		for range rapid.IntRange(1, 60).Draw(rt, "records") {
			r := anyRecord(rt, &now)
			if op := rapid.SampledFrom([]string{"", "", "?", "-"}).Draw(rt, "op"); op != "" && !r.NoValue {
				r.Value = op
			}
			put(h, texts, r)
			if !r.NoValue && (r.NoKey || r.Value != "DEL") {
				m.add(r)
			}
			if !r.NoKey && r.Value == "?" {
				want = append(want, m.String())
			}
			h.event(rt)
		}
		h.close()
		same(rt, "rows", kept(h, "rows", codec.String, codec.String), m.rows)
		var got []string
		for _, k := range h.committed {
			got = append(got, string(k.Value))
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("told %q, want %q", got, want)
		}
		h.move()
		same(rt, "rows restored", kept(h, "rows", codec.String, codec.String), m.rows)
	})
}

func TestMistakesWithStoresThatForget(t *testing.T) {
	for text, opt := range map[string]KeyValueOption{
		"a TTL of 0s":    TTL(0),
		"a TTL of 1.5ms": TTL(1500 * time.Microsecond),
		"MaxKeys(-1)":    MaxKeys(-1),
		"MaxBytes(-1)":   MaxBytes(-1),
	} {
		if _, err := Build(remembering(opt)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want something with %q", err, text)
		}
	}
}
