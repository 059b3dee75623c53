package changelog

import (
	"context"
	"errors"

	"github.com/semelstream/semel/internal/seam"
)

// Restore brings targets up to the ends that their partitions have at the
// call, side by side, and returns when all are there or have failed. It goes
// on where a target stands. The Reader stays the caller's.
func Restore(ctx context.Context, r *Reader, targets map[TP]Target) error {
	jobs, err := r.Jobs(ctx, targets)
	if err != nil {
		return err
	}
	rs := NewRestorer(r)
	var failed []error
	for _, j := range jobs {
		j.Done = func(err error) { failed = append(failed, err) }
		rs.Add(j)
	}
	err = rs.Run(ctx)
	for _, tp := range seam.SortedTPs(rs.jobs) {
		rs.Cancel(tp)
	}
	if err != nil {
		return err // the others were canceled for it
	}
	return errors.Join(failed...)
}
