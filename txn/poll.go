package txn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
)

// maxPoll is how many records a poll takes.
const maxPoll = 10_000

// Poll waits for records; Begin opens a transaction for them. They are the
// steps that Run is made of, for callers with their own loop: Poll, Begin,
// more Polls if liked, and Commit or Abort.
//
// Everything polled since the last Commit or Abort belongs to the transaction.
// What is not [Tx.Done] when it ends is read again. On ErrRewound abort, and
// drop all records polled before.
func (s *Session) Poll(ctx context.Context) ([]*kgo.Record, error) {
	for {
		recs, err := s.poll(ctx, true)
		if err != nil || len(recs) > 0 {
			return recs, err
		}
	}
}

// poll returns no records if only positions moved or, without wait, if nothing
// is there.
func (s *Session) poll(ctx context.Context, wait bool) ([]*kgo.Record, error) {
	for {
		if err := s.catchUp(ctx); err != nil {
			return nil, err
		}
		fs := s.fetch(ctx, wait)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := s.fetchErrors(fs); err != nil {
			return nil, err
		}
		recs, moved := s.take(fs)
		if moved || !wait {
			return recs, nil
		}
	}
}

// catchUp meets what happened to the producer and in the group since the last
// poll.
func (s *Session) catchUp(ctx context.Context) error {
	if len(s.hand) > 0 {
		if _, ok := s.group.still(s.turn); !ok {
			if s.tx == nil {
				s.rewind()
			}
			return ErrRewound
		}
	}
	if s.prod == nil {
		assert.That(s.tx == nil, "a transaction of %s has no producer", s.cfg.TransactionalID)
		if err := s.openProducer(ctx); err != nil {
			return err
		}
	}
	owned, err := s.group.now()
	if err != nil {
		return err
	}
	s.drop(owned)
	return s.start(ctx, owned)
}

// drop stops reading what is not owned any more, or was away in between:
// somebody else may have moved its offset.
func (s *Session) drop(owned map[TP]uint64) {
	gone := map[TP]uint64{}
	for tp, seq := range s.reading {
		if owned[tp] != seq {
			gone[tp] = seq
			delete(s.reading, tp)
		}
	}
	if len(gone) > 0 {
		s.prod.Client().RemoveConsumePartitions(byTopic(gone))
	}
}

// start reads what is owned from its committed offset on.
func (s *Session) start(ctx context.Context, owned map[TP]uint64) error {
	var fresh []TP
	for _, tp := range seam.SortedTPs(owned) {
		if _, ok := s.reading[tp]; !ok {
			fresh = append(fresh, tp)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	offs, err := Committed(ctx, s.prod.Client(), s.cfg.Group, fresh, s.reportBlocked)
	if err != nil {
		return err
	}
	at := map[string]map[int32]kgo.Offset{}
	for _, tp := range fresh {
		o := kgo.NewOffset().AtStart()
		if c, ok := offs[tp]; ok {
			o = kgo.NewOffset().At(c.At)
		}
		if at[tp.Topic] == nil {
			at[tp.Topic] = map[int32]kgo.Offset{}
		}
		at[tp.Topic][tp.Partition] = o
		s.reading[tp] = owned[tp]
	}
	s.prod.Client().AddConsumePartitions(at)
	return nil
}

// reportBlocked says, about once a second, why nothing is read.
func (s *Session) reportBlocked(tries int) {
	if every := int(time.Second / stablePause); tries%every == 0 {
		s.log.Warn("waiting for committed offsets: a transaction of another session holds them; it ends with that session's restart or its transaction timeout",
			zap.String("group", s.cfg.Group), zap.Int("tries", tries))
	}
}

// fetch polls the client; a change in the group ends its wait.
func (s *Session) fetch(ctx context.Context, wait bool) kgo.Fetches {
	if !wait {
		return s.prod.Client().PollRecords(nil, maxPoll) //nolint:staticcheck // nil means do not wait
	}
	pctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.group.waking(cancel)
	defer s.group.waking(nil)
	if !s.current() {
		cancel() // it changed before it could wake us
	}
	return s.prod.Client().PollRecords(pctx, maxPoll)
}

// current says that what is read is what is owned.
func (s *Session) current() bool {
	now, err := s.group.now()
	if err != nil || len(now) != len(s.reading) {
		return false
	}
	for tp, seq := range s.reading {
		if now[tp] != seq {
			return false
		}
	}
	return true
}

// fetchErrors are those that the client does not cure by itself.
func (s *Session) fetchErrors(fs kgo.Fetches) error {
	for _, fe := range fs.Errors() {
		switch {
		case errors.Is(fe.Err, context.Canceled), errors.Is(fe.Err, kgo.ErrClientClosed):
		case Judge(fe.Err) == OutcomeRetry, Judge(fe.Err) == OutcomeNone:
		case errors.Is(fe.Err, kerr.UnknownTopicOrPartition):
		case errors.Is(fe.Err, kerr.OffsetOutOfRange):
			return &seam.PartitionError{TP: TP{Topic: fe.Topic, Partition: fe.Partition}, Err: fmt.Errorf(
				"%w: the committed offset of group %s is not in the log, records were deleted before they were processed; "+
					"to go on without them set the group's offset with kafka-consumer-groups --reset-offsets", fe.Err, s.cfg.Group)}
		default:
			return &seam.PartitionError{TP: TP{Topic: fe.Topic, Partition: fe.Partition}, Err: withFix(fe.Err, fe.Topic)}
		}
	}
	return nil
}

// take puts what was fetched of our partitions into the hand.
func (s *Session) take(fs kgo.Fetches) (recs []*kgo.Record, moved bool) {
	first := len(s.hand) == 0
	turn := s.group.hold(func(owned map[TP]uint64) bool {
		fs.EachPartition(func(fp kgo.FetchTopicPartition) {
			tp := TP{Topic: fp.Topic, Partition: fp.Partition}
			seq, ok := owned[tp]
			if !ok || s.reading[tp] != seq || len(fp.Records) == 0 {
				return
			}
			moved = true
			recs = s.holdPartition(tp, fp.Records, recs)
		})
		return moved
	})
	if first {
		s.turn = turn
	}
	return recs, moved
}

func (s *Session) holdPartition(tp TP, fetched, recs []*kgo.Record) []*kgo.Record {
	h := s.hand[tp]
	if h == nil {
		h = &held{last: -1, next: -1, done: -1}
		s.hand[tp] = h
	}
	assert.That(fetched[0].Offset >= h.next, "%s: read offset %d after position %d", tp, fetched[0].Offset, h.next)
	for _, r := range fetched {
		if !r.Attrs.IsControl() {
			recs = append(recs, r)
			h.last = r.Offset
		}
	}
	end := fetched[len(fetched)-1]
	h.next, h.epoch = end.Offset+1, end.LeaderEpoch
	return recs
}

// offsets are the positions that are done, and whether all that is in hand is.
func (s *Session) offsets(mark string) (offs Offsets, whole bool) {
	offs, whole = Offsets{}, true
	for tp, h := range s.hand {
		switch {
		case h.last < 0 || h.done > h.last: // control records after it are ours too
			offs[tp] = Offset{At: h.next, Epoch: h.epoch, Metadata: mark}
		case h.done >= 0:
			offs[tp] = Offset{At: h.done, Epoch: h.epoch, Metadata: mark}
			whole = false
		default:
			whole = false
		}
	}
	return offs, whole
}

func byTopic[V any](m map[TP]V) map[string][]int32 {
	t := map[string][]int32{}
	for _, tp := range seam.SortedTPs(m) {
		t[tp.Topic] = append(t[tp.Topic], tp.Partition)
	}
	return t
}
