package runtime

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/semelstream/semel/internal/seam"
)

// fetchOffsets finds where the inputs of jobs go on: at their committed
// offsets, once these are stable, or where the topology says for those that
// have none.
func (p *preparer) fetchOffsets(ctx context.Context, jobs []*prepareJob) error {
	a := p.app
	tps := inputsOf(jobs)
	committed, err := a.env.Broker.Committed(ctx, a.cfg.App, a.txnPrefix(), tps)
	if err != nil {
		return fmt.Errorf("fetching committed offsets: %w", err)
	}
	a.env.Stops.At("offsets fetched")
	var unset []*input
	for _, j := range jobs {
		j.offsets, j.stable = seam.Offsets{}, map[seam.TP]int64{}
		for _, in := range j.t.inputs {
			o, ok := committed[in.tp]
			if !ok {
				unset, j.unset = append(unset, in), true
				continue
			}
			j.offsets[in.tp], j.found = o, true
			_, named := decodeMeta(o.Metadata)
			mergeTimes(j.times, named)
		}
	}
	starts, err := a.firstOffsets(ctx, unset)
	if err != nil {
		return err
	}
	stable, err := a.env.Broker.Stable(ctx, tps)
	if err != nil {
		return fmt.Errorf("fetching the inputs' ends: %w", err)
	}
	for _, j := range jobs {
		for _, in := range j.t.inputs {
			j.stable[in.tp] = stable[in.tp]
			if at, ok := starts[in.tp]; ok {
				j.offsets[in.tp] = seam.Offset{At: at, Epoch: -1}
			}
		}
	}
	return nil
}

func inputsOf(jobs []*prepareJob) (tps []seam.TP) {
	for _, j := range jobs {
		for _, in := range j.t.inputs {
			tps = append(tps, in.tp)
		}
	}
	return tps
}

// firstOffsets are where inputs begin that have no offset.
func (a *App) firstOffsets(ctx context.Context, unset []*input) (map[seam.TP]int64, error) {
	out := map[seam.TP]int64{}
	ask := func(tps []seam.TP, f func() (map[seam.TP]int64, error)) error {
		if len(tps) == 0 {
			return nil
		}
		got, err := f()
		if err != nil {
			return fmt.Errorf("finding where to begin: %w", err)
		}
		maps.Copy(out, got)
		return nil
	}
	var first, last []seam.TP
	since := map[int64][]seam.TP{}
	for _, in := range unset {
		switch r := a.resetOf(in); {
		case r.End:
			last = append(last, in.tp)
		case r.Ago > 0:
			since[r.Ago] = append(since[r.Ago], in.tp)
		default:
			first = append(first, in.tp)
		}
	}
	if err := ask(first, func() (map[seam.TP]int64, error) { return a.env.Broker.Starts(ctx, first) }); err != nil {
		return nil, err
	}
	if err := ask(last, func() (map[seam.TP]int64, error) { return a.env.Broker.Stable(ctx, last) }); err != nil {
		return nil, err
	}
	for _, ago := range slices.Sorted(maps.Keys(since)) {
		t := a.env.Clock.Now().Add(-time.Duration(ago) * time.Millisecond)
		if err := ask(since[ago], func() (map[seam.TP]int64, error) { return a.env.Broker.Since(ctx, since[ago], t) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}
