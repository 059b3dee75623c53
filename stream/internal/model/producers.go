package model

import (
	"slices"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// States of a transactional id.
const (
	txnEmpty = iota
	txnOngoing
	txnPreparing // decided; markers are on their way
)

// A pendingOffset is an offset in a transaction, not visible before its marker.
type pendingOffset struct {
	group string
	tp    seam.TP
	off   seam.Offset
	// record is its place in the log of offsets.
	record int64
	done   bool // its marker is written
}

// A producer is what the coordinator knows of a transactional id.
type producer struct {
	id        string
	pid       int64
	epoch     int16
	state     int8
	commit    bool // the last decision
	fresh     bool // InitProducerID came since: an older epoch is a zombie, not a retry
	parts     []seam.TP
	offs      []pendingOffset
	deadline  int64    // of the open transaction, virtual ns
	markers   []marker // still to be written
	notBefore int64    // markers wait until then
}

// A marker is one thing that is still to be made visible: the end of the
// transaction in a partition, or one of its offsets.
type marker struct {
	tp  seam.TP
	off *pendingOffset
}

// initProducerID fences whoever had the id. An open transaction is aborted in
// the background, and until that is done the answer is
// CONCURRENT_TRANSACTIONS.
func (b *broker) initProducerID(id string) (pid int64, epoch int16, err error) {
	t := b.producers[id]
	if t == nil {
		t = &producer{id: id, pid: b.nextPID, epoch: -1}
		b.nextPID++
		b.producers[id] = t
		b.order = append(b.order, t)
	}
	switch t.state {
	case txnOngoing:
		t.epoch++
		t.fresh = true
		b.decide(t, false)
		return 0, 0, kerr.ConcurrentTransactions
	case txnPreparing:
		return 0, 0, kerr.ConcurrentTransactions
	}
	t.epoch++
	t.fresh = true
	return t.pid, t.epoch, nil
}

// A ticket is what every request of a producer carries.
type ticket struct {
	id    string
	pid   int64
	epoch int16
}

// begin finds the producer of a request that is part of a transaction, and
// opens the transaction if need be. fenced is what an old epoch is told; it
// depends on the request.
func (b *broker) begin(k ticket, fenced error) (*producer, error) {
	t := b.producers[k.id]
	switch {
	case t == nil || t.pid != k.pid:
		return nil, kerr.InvalidProducerIDMapping
	case t.epoch != k.epoch:
		return nil, fenced
	case t.state == txnPreparing:
		return nil, kerr.ConcurrentTransactions
	case t.state == txnEmpty:
		t.state, t.fresh, t.deadline = txnOngoing, false, b.now+b.txnTimeout
		b.alarm(t.deadline)
	}
	return t, nil
}

func (b *broker) addPartitions(k ticket, tps []seam.TP) error {
	for _, tp := range tps {
		if b.log(tp) == nil {
			return kerr.UnknownTopicOrPartition
		}
	}
	t, err := b.begin(k, kerr.ProducerFenced)
	if err != nil {
		return err
	}
	for _, tp := range tps {
		if !slices.Contains(t.parts, tp) {
			t.parts = append(t.parts, tp)
			l := b.log(tp)
			l.open = append(l.open, opened{pid: t.pid, first: -1})
		}
	}
	return nil
}

// produce appends the records of one partition; seq is how many went there
// before in this transaction.
func (b *broker) produce(k ticket, tp seam.TP, seq int, recs []*kgo.Record) (base int64, err error) {
	l := b.log(tp)
	if l == nil {
		return 0, kerr.UnknownTopicOrPartition
	}
	if b.fits(tp.Topic, recs) >= 0 {
		return 0, kerr.MessageTooLarge
	}
	t, err := b.begin(k, kerr.InvalidProducerEpoch)
	if err != nil {
		return 0, err
	}
	assert.That(slices.Contains(t.parts, tp), "%s produces to %s, which it did not add", k.id, tp)
	return l.produce(t.pid, t.epoch, seq, recs), nil
}

func (b *broker) txnOffsetCommit(k ticket, m seam.Member, offs seam.Offsets) error {
	if err := b.fence(m); err != nil {
		return err
	}
	t, err := b.begin(k, kerr.InvalidProducerEpoch)
	if err != nil {
		return err
	}
	for _, tp := range offs.Sorted() {
		p := pendingOffset{group: m.Group, tp: tp, off: offs[tp], record: b.offsetRecord()}
		i := slices.IndexFunc(t.offs, func(o pendingOffset) bool { return o.group == p.group && o.tp == tp })
		if i >= 0 {
			t.offs[i] = p
		} else {
			t.offs = append(t.offs, p)
		}
	}
	return nil
}

// endTxn decides. Each transaction has an epoch of its own, so a request with
// the epoch before is the same request again, unless someone has called
// initProducerID since.
func (b *broker) endTxn(k ticket, commit bool) (epoch int16, err error) {
	t := b.producers[k.id]
	switch {
	case t == nil || t.pid != k.pid:
		return 0, kerr.InvalidProducerIDMapping
	case k.epoch == t.epoch-1 && !t.fresh && t.state != txnOngoing:
		if t.commit != commit {
			return 0, kerr.InvalidTxnState
		}
		if t.state == txnPreparing {
			return 0, kerr.ConcurrentTransactions
		}
		return t.epoch, nil
	case k.epoch != t.epoch:
		return 0, kerr.ProducerFenced
	case t.state == txnPreparing:
		return 0, kerr.ConcurrentTransactions
	case t.state == txnEmpty && commit:
		return 0, kerr.InvalidTxnState
	case t.state == txnEmpty:
		return t.epoch, nil
	}
	t.epoch++
	b.decide(t, commit)
	return t.epoch, nil
}

// decide fixes the outcome; what is visible changes marker by marker.
func (b *broker) decide(t *producer, commit bool) {
	t.state, t.commit = txnPreparing, commit
	for _, tp := range t.parts {
		t.markers = append(t.markers, marker{tp: tp})
	}
	for i := range t.offs {
		t.markers = append(t.markers, marker{off: &t.offs[i]})
	}
	t.parts = nil
	t.notBefore = b.now + b.markerDelay()
	b.preparing = append(b.preparing, t)
	if len(t.markers) == 0 {
		b.settle(t)
	}
	for b.eager && t.state == txnPreparing {
		b.writeMarker(t, 0)
	}
}

// writeMarker makes the i-th outstanding marker of t visible. Their order is
// free: they lie on different brokers.
func (b *broker) writeMarker(t *producer, i int) {
	m := t.markers[i]
	t.markers = slices.Delete(t.markers, i, i+1)
	if m.off == nil {
		b.log(m.tp).mark(t.pid, t.commit, b.time())
		b.changed(m.tp)
	} else {
		if t.commit {
			b.commitOffset(m.off.group, m.off.tp, m.off.off, m.off.record)
		}
		m.off.done = true
	}
	if len(t.markers) == 0 {
		b.settle(t)
	}
}

func (b *broker) settle(t *producer) {
	t.state, t.offs = txnEmpty, nil
	b.preparing = slices.DeleteFunc(b.preparing, func(o *producer) bool { return o == t })
}

// pending says whether a transaction, open or being ended, holds an offset of
// the group for tp.
func (b *broker) pending(group string, tp seam.TP) bool {
	for _, t := range b.order {
		if t.state != txnEmpty && slices.ContainsFunc(t.offs, func(o pendingOffset) bool { return o.group == group && o.tp == tp && !o.done }) {
			return true
		}
	}
	return false
}

// ongoing lists the ids with an open transaction, in the order of their birth.
func (b *broker) ongoing() (ids []string) {
	for _, t := range b.order {
		if t.state == txnOngoing {
			ids = append(ids, t.id)
		}
	}
	return ids
}
