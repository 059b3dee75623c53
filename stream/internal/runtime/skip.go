package runtime

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
)

// ExpiredTime is the name of the time before which the rows of a store have
// expired, among a task's named times.
func ExpiredTime(store string) string { return store + ".expired" }

// A changelog of windows may hold many that have expired: it keeps them for a
// day longer than the store, and compaction does not remove them. A store that
// begins empty has no need of them. What has expired is known exactly, since
// the bound was committed with the offsets; the newest record's time would not
// do, as it may be of a transaction that was aborted. Windows that are kept
// begin at the bound or later, and their rows are of records of that time or
// later: all of them lie behind the first record of that time.

// unexpired is where the restore of a store begins, whose changelog begins at
// start.
func (p *preparer) unexpired(ctx context.Context, j *prepareJob, s *taskStore, start int64) (int64, error) {
	bound, ok := j.times[ExpiredTime(s.spec.Name)]
	if !ok || bound <= 0 || !s.spec.NeverEarly || s.part.Position() > 0 {
		return start, nil
	}
	since, err := p.app.env.Broker.Since(ctx, []seam.TP{s.tp}, time.UnixMilli(bound))
	if err != nil {
		return 0, fmt.Errorf("asking where windows that are kept begin: %w", err)
	}
	if at := since[s.tp]; at > start {
		p.app.log.Info("restoring without what has expired", zap.Stringer("task", j.t.id), zap.String("store", s.spec.Name),
			zap.Int64("begins", start), zap.Int64("from", at))
		start = at
	}
	return start, nil
}
