package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// Run calls handle with each batch inside a transaction and commits the
// batch's offsets with what handle produced, when [Config].Interval is up or
// the input is drained. If the group rebalances or handle fails, the
// transaction aborts and its batches are read again, after a pause that grows
// to a second. An error made by [Fatal] ends Run, as do errors that only a
// person can cure. Run returns nil when ctx ends.
func (s *Session) Run(ctx context.Context, handle func(*Tx, []*kgo.Record) error) error {
	for aborts := 0; ctx.Err() == nil; {
		committed, err := s.round(ctx, handle)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			return err
		case committed:
			aborts = 0
		default:
			aborts++
			_ = sleep(ctx, min(5*time.Millisecond<<min(aborts, 10), time.Second)) // the loop sees the end of ctx
		}
	}
	return nil
}

// round is one transaction.
func (s *Session) round(ctx context.Context, handle func(*Tx, []*kgo.Record) error) (bool, error) {
	recs, err := s.poll(ctx, true)
	if errors.Is(err, ErrRewound) {
		return true, nil // nothing was lost but the poll
	}
	if err != nil {
		return false, s.passing(err)
	}
	t, err := s.begin(ctx)
	if err != nil {
		return false, s.passing(err)
	}
	if err := s.fill(ctx, t, recs, handle); err != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
		defer cancel()
		_ = t.Abort(end) // it fails only if handle has ended the transaction
		if Judge(err) == OutcomeFatal {
			return false, err
		}
		s.log.Warn("processing failed, its input is read again", zap.String("group", s.cfg.Group), zap.Error(err))
		return false, nil
	}
	ok, err := t.Commit(ctx)
	return ok, s.passing(err)
}

// passing keeps the errors that end Run: in all others the next round starts
// from the stable offsets, which is always right.
func (s *Session) passing(err error) error {
	switch Judge(err) {
	case OutcomeNone:
		return nil
	case OutcomeFatal:
		return err
	}
	s.log.Warn("starting again from the committed offsets", zap.String("group", s.cfg.Group), zap.Stringer("outcome", Judge(err)), zap.Error(err))
	if s.tx == nil {
		s.closeProducer()
	}
	return nil
}

// fill processes batches until the interval is up or the input is drained.
func (s *Session) fill(ctx context.Context, t *Tx, recs []*kgo.Record, handle func(*Tx, []*kgo.Record) error) error {
	end := time.Now().Add(s.cfg.Interval)
	for {
		if len(recs) > 0 {
			if err := handle(t, recs); err != nil {
				return fmt.Errorf("txn: handler: %w", err)
			}
			for _, r := range recs {
				t.Done(r)
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.err != nil || !time.Now().Before(end) {
			return nil //nolint:nilerr // Commit says what is wrong
		}
		var err error
		recs, err = s.poll(ctx, false)
		switch {
		case errors.Is(err, ErrRewound):
			return nil // Commit finds that too, and aborts
		case err != nil:
			return err
		case len(recs) == 0:
			return nil
		}
	}
}
