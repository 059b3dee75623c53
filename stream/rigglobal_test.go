package stream

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// A rigGlobal is a global table of a rig: a record is in it as soon as it is
// fed.
type rigGlobal struct {
	g     *graph.Global
	rows  *state.Shared
	check func(*kgo.Record) error
}

func (r *rig) openGlobals() {
	r.t.Helper()
	r.globals = map[string]*rigGlobal{}
	for _, g := range r.top.graph.Globals {
		rows, err := state.OpenShared(state.NewMemory(), g.Topic.Name)
		r.must(err)
		check, err := r.prog.Global(g.Store, rows)
		r.must(err)
		r.globals[g.Topic.Name] = &rigGlobal{g, rows, check}
	}
}

// global is the rows of a store.
func (r *rig) global(store string) *state.Shared {
	for _, g := range r.globals {
		if g.g.Store == store {
			return g.rows
		}
	}
	return nil
}

// globalRows are the rows of a table of texts.
func (r *rig) globalRows(store string) (out []Row, ok bool) {
	r.t.Helper()
	rows := r.global(store)
	if rows == nil {
		return nil, false
	}
	all, err := state.SharedOf[string, string](rows)
	r.must(err)
	for e, err := range all.All() {
		r.must(err)
		out = append(out, Row{Key: e.Key, Value: e.Value, Ms: e.Time.UnixMilli()})
	}
	return out, true
}

// feedGlobal applies k if its topic is a global table.
func (r *rig) feedGlobal(k *kgo.Record) error {
	g := r.globals[k.Topic]
	if g == nil {
		return nil
	}
	if k.Key == nil {
		r.drops = append(r.drops, g.g.Node.Name+": "+noKey)
		return nil
	}
	if err := g.check(k); err != nil {
		f, ok := errors.AsType[*runtime.Failure](err)
		if !ok {
			return err
		}
		policy := f.Policy
		if policy == nil {
			policy = r.policy
		}
		if policy != nil && policy(nil, f, k).Action == runtime.ActSkip {
			return nil
		}
		return f
	}
	return g.rows.Apply(k.Partition, slices.Values([]state.Row{{Key: k.Key, Value: k.Value, Time: k.Timestamp.UnixMilli()}}), k.Offset+1)
}
