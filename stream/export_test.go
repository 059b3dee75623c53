package stream

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A Replay runs a topology as the reference's test driver did when the golden
// traces were recorded: a record goes on to the sinks and repartition topics;
// what waits in repartition topics comes next, the smallest timestamp first.
type Replay struct{ r *rig }

// NewReplay builds define for a replay.
func NewReplay(t *testing.T, define func(*Builder)) *Replay { return &Replay{newRig(t, define)} }

// Feed processes k and all that follows from it, and returns what was written
// to topics that are not internal.
func (p *Replay) Feed(k *kgo.Record) []*kgo.Record {
	p.r.t.Helper()
	out, err := p.Try(k)
	p.r.must(err)
	return out
}

// Try is Feed for a record that may fail.
func (p *Replay) Try(k *kgo.Record) ([]*kgo.Record, error) {
	err := p.drain([]*kgo.Record{k})
	return p.take(), err
}

// A Drop is a record that an operator left out.
type Drop struct{ Kind, Operator, Reason string }

// Dropped are the drops since the last call.
func (p *Replay) Dropped() []Drop {
	var drops []Drop
	for _, d := range p.r.drops {
		op, reason, _ := strings.Cut(d, ": ")
		for _, n := range p.r.top.graph.Nodes {
			if n.Name == op {
				drops = append(drops, Drop{n.Kind, op, reason})
			}
		}
	}
	p.r.drops = nil
	return drops
}

// Advance moves the wall clock.
func (p *Replay) Advance(d time.Duration) []*kgo.Record {
	p.r.t.Helper()
	p.r.must(p.r.advance(d))
	return p.take()
}

// Commit closes the transaction.
func (p *Replay) Commit() []*kgo.Record {
	p.r.t.Helper()
	p.r.commit()
	return p.take()
}

// Restart opens everything anew from what was committed.
func (p *Replay) Restart() {
	p.r.t.Helper()
	p.r.abort()
}

func (p *Replay) take() []*kgo.Record {
	out := p.r.out
	p.r.out = nil
	return out
}

func (p *Replay) drain(waiting []*kgo.Record) error {
	for len(waiting) > 0 {
		k := slices.MinFunc(waiting, func(a, b *kgo.Record) int { return a.Timestamp.Compare(b.Timestamp) })
		waiting = slices.DeleteFunc(waiting, func(o *kgo.Record) bool { return o == k })
		if err := p.dispatch(k); err != nil {
			return err
		}
		for _, task := range p.r.sorted() {
			for _, o := range task.Take() {
				c := *o
				if p.r.internal(c.Topic) {
					waiting = append(waiting, &c)
				} else {
					p.r.out = append(p.r.out, &c)
				}
			}
		}
	}
	return nil
}

// dispatch gives k to the tasks that read its topic.
func (p *Replay) dispatch(k *kgo.Record) error {
	tp := seam.TP{Topic: k.Topic, Partition: k.Partition}
	k.Offset = p.r.offsets[tp]
	p.r.offsets[tp]++
	if err := p.r.feedGlobal(k); err != nil {
		return err
	}
	for _, sub := range p.r.top.graph.Subs {
		for i, topic := range sub.Sources {
			if topic.FullName(rigApp) == k.Topic {
				if err := p.r.process(p.r.tasks[seam.Task{Sub: int32(sub.ID), Partition: k.Partition}], i, k); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// A Row is a row of a store as text. Ms is its time; Start and End are those of
// a session, Start that of a window.
type Row struct {
	Key, Value string
	Ms         int64
	Start, End int64
}

// Rows are the rows of a store of texts or numbers by text; false if there is
// no such store. Of a store of versions it is the newest of each of the keys.
func (p *Replay) Rows(store string, keys []string) (rows []Row, ok bool) {
	p.r.t.Helper()
	if rows, ok := p.r.globalRows(store); ok {
		return rows, true
	}
	for _, task := range p.r.sorted() {
		if task.db.Part(store) == nil {
			continue
		}
		texts, err := rowsOf(task.db, p.declared(store), codec.String, keys)
		if err != nil {
			texts, err = rowsOf(task.db, p.declared(store), codec.Int64, keys)
		}
		p.r.must(err)
		rows, ok = append(rows, texts...), true
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	return rows, ok
}

func (p *Replay) declared(store string) *graph.Store {
	for _, s := range p.r.top.graph.Stores {
		if s.Name == store {
			return s
		}
	}
	return nil
}

// rowsOf reads a store whose values value knows.
func rowsOf[V any](db *state.DB, declared *graph.Store, value codec.Codec[V], keys []string) (rows []Row, err error) {
	store := declared.Name
	switch declared.Kind {
	case graph.Versioned:
		s, err := state.OpenVersioned(db, store, codec.String, value, declared.Retain)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			v, from, ok, err := s.Get(key)
			if err != nil {
				return nil, err
			}
			if ok {
				rows = append(rows, Row{Key: key, Value: fmt.Sprint(v), Ms: from})
			}
		}
	case graph.Window:
		s, err := state.OpenWindow(db, store, codec.String, value)
		if err != nil {
			return nil, err
		}
		for r, err := range s.All() {
			if err != nil {
				return nil, err
			}
			rows = append(rows, Row{Key: r.Key, Value: fmt.Sprint(r.Value), Ms: r.Time, Start: r.Start})
		}
	case graph.Session:
		s, err := state.OpenSession(db, store, codec.String, value)
		if err != nil {
			return nil, err
		}
		for r, err := range s.All() {
			if err != nil {
				return nil, err
			}
			rows = append(rows, Row{Key: r.Key, Value: fmt.Sprint(r.Value), Ms: r.Time, Start: r.Start, End: r.End})
		}
	default:
		s, err := state.OpenKV(db, store, codec.String, value)
		if err != nil {
			return nil, err
		}
		for r, err := range s.All() {
			if err != nil {
				return nil, err
			}
			rows = append(rows, Row{Key: r.Key, Value: fmt.Sprint(r.Value), Ms: r.Time.UnixMilli()})
		}
	}
	return rows, nil
}

// PublicError is what App.Run makes of the runtime's errors.
func PublicError(app string, err error) error { return publicError(app, err) }
