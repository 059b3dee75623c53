package runtime

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/seam"
)

// A transit is one transaction on its way to the broker. A goroutine of its own
// carries there what the worker's loop hands over, and ends the transaction
// once it is closed; the loop waits for no answer of the broker's.
//
// At most two are under way: the open one, and the one before it, which is
// ending. The open one follows when the records of the other are written: its own
// would change places with them in a partition. If the ending one does not end
// well, the open one is lost with it: it was made from what that one did.
type transit struct {
	txn    seam.Transaction
	before *transit    // nil if its records are written for certain
	signal seam.Signal // wakes its goroutine
	cancel context.CancelFunc

	// Of the worker's loop until the transaction is closed, then of its end.
	running bool // it has its goroutine
	output  bool // something is produced
	load    load // what the goroutine carries
	closing

	// Guarded by worker.mu.
	adds     []seam.TP
	queue    chunks
	bytes    int64 // of keys and values in queue
	fresh    bool  // the first record of a partition is in queue
	crowded  bool  // the loop waits until the queue is empty
	closed   bool  // nothing more is handed over
	written  bool  // all its records are, so that others may follow them
	done     bool
	err      error
	isStored bool // of mutants
}

// closing is what was true when a transaction closed: nothing that the next one
// does reaches it.
type closing struct {
	member  seam.Member // read when the transaction closed, never kept
	offsets seam.Offsets
	tasks   []ended
	begun   time.Time
	records int
}

// ended is the part of a task in a transaction that is ending.
type ended struct {
	t     *task
	drops map[dropKey]int
}

// So many staged records, or bytes of them, do not wait for those of other tasks.
const (
	much      = 2048
	muchBytes = 1 << 20
)

// handOverMuch hands over what a task has staged if that is much.
func (w *worker) handOverMuch(ctx context.Context, t *task) error {
	if len(t.staged) < much && t.stagedBytes < muchBytes {
		return nil
	}
	return w.handOver(ctx, t)
}

// handOverAll hands over what all tasks have staged: small amounts together, so
// that all their partitions join the transaction by one request.
func (w *worker) handOverAll(ctx context.Context) error {
	for _, t := range w.order {
		if err := w.handOver(ctx, t); err != nil {
			return err
		}
	}
	if len(w.sinks.add) > 0 {
		w.push(ctx, nil, 0)
	}
	return nil
}

// handOver gives the open transaction what a task has staged. It waits only
// where too much is on its way.
func (w *worker) handOver(ctx context.Context, t *task) error {
	if len(t.staged) == 0 {
		return nil
	}
	w.transit.output = true
	w.changed()
	next, crowded := w.push(ctx, t.staged, t.stagedBytes)
	t.staged, t.stagedBytes = next, 0
	if crowded {
		return w.awaitRoom(ctx, w.transit)
	}
	return nil
}

// push gives the open transaction partitions and records, and returns an empty
// slice for the next ones. It says if many wait.
func (w *worker) push(ctx context.Context, records []*kgo.Record, bytes int64) (next []*kgo.Record, crowded bool) {
	x := w.transit
	next = records[:0]
	w.mu.Lock()
	x.adds = append(x.adds, w.sinks.add...)
	if x.queue.push(records) {
		next = w.pool.get()
	}
	x.fresh = x.fresh || w.sinks.fresh && len(records) > 0
	x.bytes += bytes
	crowded = x.queue.n >= w.app.cfg.Queue || x.bytes >= w.app.cfg.QueueBytes
	w.mu.Unlock()
	w.sinks.add = w.sinks.add[:0]
	if len(records) > 0 {
		w.sinks.fresh = false
	}
	w.send(ctx, x)
	return next, crowded
}

// awaitRoom waits until what was handed over has gone to the producer.
func (w *worker) awaitRoom(ctx context.Context, x *transit) error {
	for {
		if _, err := w.meetEnd(ctx); err != nil {
			return err
		}
		w.mu.Lock()
		x.crowded = x.queue.n > 0
		crowded, err := x.crowded, x.err
		w.mu.Unlock()
		if !crowded || err != nil {
			return err
		}
		w.signal.Wait(context.WithoutCancel(ctx), time.Second)
	}
}

// send wakes the goroutine of a transaction, which begins with the first call.
func (w *worker) send(ctx context.Context, x *transit) {
	if x.running {
		x.signal.Notify()
		return
	}
	x.running = true
	ctx, x.cancel = context.WithCancel(ctx)
	w.app.env.Go("transaction", func() { w.carry(ctx, x) })
}

// carry is the goroutine of a transaction. It touches nothing of the worker's
// but what mu guards.
func (w *worker) carry(ctx context.Context, x *transit) {
	err := w.carrySteps(ctx, x)
	if err == nil {
		w.app.env.Stops.At("C5")
	}
	w.note(func() { x.done, x.err = true, err })
}

func (w *worker) carrySteps(ctx context.Context, x *transit) error {
	for {
		w.unload(x)
		l := &x.load
		if len(l.adds) > 0 {
			// Partitions join by one request for all, before the first record for
			// them: to join by the record itself costs about 20 ms per broker.
			if err := x.txn.Add(ctx, l.adds); err != nil {
				return err
			}
			l.joined += len(l.adds)
		}
		if err := x.produce(ctx, w.app.cfg.Settle); err != nil {
			return err
		}
		switch {
		case l.last:
			return w.endSteps(ctx, x)
		case len(l.adds) == 0 && l.records.n == 0:
			x.signal.Wait(ctx, time.Second)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// produce gives the load to the producer. If it is much, and has the first records
// of partitions, those go ahead.
func (x *transit) produce(ctx context.Context, much int) error {
	l := &x.load
	if l.fresh && l.records.n >= much {
		l.pickFirsts()
		if err := x.txn.ProduceFirst(ctx, l.firsts); err != nil {
			return err
		}
	}
	for _, records := range l.records.list {
		x.txn.Produce(records)
	}
	return nil
}

// A load is what a transaction's goroutine carries at a time.
type load struct {
	adds    []seam.TP
	records chunks
	fresh   bool // records has the first one of a partition
	last    bool // nothing follows

	firsts []*kgo.Record
	joined int              // partitions of the transaction
	seen   map[seam.TP]bool // those of them whose first record was met
}

// pickFirsts moves the first record of each partition out of records. Those of a
// partition keep their order.
func (l *load) pickFirsts() {
	l.firsts = l.firsts[:0]
	if l.seen == nil {
		l.seen = map[seam.TP]bool{}
	}
	var last seam.TP
	isFirst := func(r *kgo.Record) bool {
		if r.Topic == last.Topic && r.Partition == last.Partition { // as the one before
			return false
		}
		last = seam.TP{Topic: r.Topic, Partition: r.Partition}
		if l.seen[last] {
			return false
		}
		l.seen[last] = true
		return true
	}
	for i, records := range l.records.list {
		if len(l.seen) >= l.joined {
			break
		}
		l.records.list[i] = l.pick(records, isFirst)
	}
	l.records.n -= len(l.firsts)
}

// pick moves those out of records that are first ones.
func (l *load) pick(records []*kgo.Record, isFirst func(*kgo.Record) bool) (rest []*kgo.Record) {
	rest = records[:0]
	for i, r := range records {
		switch {
		case isFirst(r):
			l.firsts = append(l.firsts, r)
		case len(rest) == i:
			rest = records[:i+1]
		default:
			rest = append(rest, r)
		}
	}
	return rest
}

// unload takes what was handed over, as far as it may go, and gives the memory
// of the load before in exchange.
func (w *worker) unload(x *transit) {
	l := &x.load
	l.adds, l.fresh = l.adds[:0], false
	w.mu.Lock()
	w.pool.put(&l.records)
	produce := w.mayProduce(x)
	if produce || !w.app.cfg.Continuous {
		// Where transactions follow at once, the markers of the last one of this
		// producer are hardly written before the records of the other's: the request
		// would only be turned away.
		l.adds, x.adds = x.adds, l.adds
	}
	if produce {
		l.records, x.queue, x.bytes = x.queue, l.records, 0
		l.fresh, x.fresh = x.fresh, false
		l.last = x.closed
	}
	if x.closed && !x.output {
		l.adds = l.adds[:0] // nothing came of it
	}
	room := x.crowded && x.queue.n == 0
	w.mu.Unlock()
	if room {
		w.signal.Notify()
	}
}

// mayProduce says that records of x may go out: those of the transaction before
// are written.
func (w *worker) mayProduce(x *transit) bool {
	return x.before == nil || x.before.written || mutant == overtake
}

// note tells the worker, and the transaction that follows, how far one is.
func (w *worker) note(news func()) {
	w.mu.Lock()
	news()
	txn, next := w.txn, w.transit
	w.mu.Unlock()
	if txn != nil {
		txn.Wake()
	}
	if next != nil {
		next.signal.Notify()
	}
	w.signal.Notify()
}

// underWay are the transactions that have a goroutine.
func (w *worker) underWay() (all []*transit) {
	for _, x := range []*transit{w.ending, w.transit} {
		if x != nil && x.running {
			all = append(all, x)
		}
	}
	return all
}

// over says that the goroutine of a transaction has ended.
func (w *worker) over(x *transit) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return x.done
}

// dropOpen forgets the open transaction, whose goroutine has ended.
func (w *worker) dropOpen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transit = nil
}

// newTransit is the next transaction. It takes over the memory of one that is
// over.
func (w *worker) newTransit(txn seam.Transaction, before *transit) *transit {
	x := &transit{txn: txn, before: before, signal: w.app.env.Signal()}
	if old := w.spare; old != nil {
		w.spare = nil
		l := &old.load
		clear(l.firsts)
		clear(l.seen)
		x.adds, x.queue.list = old.adds[:0], old.queue.list[:0]
		x.load = load{adds: l.adds[:0], records: l.records, firsts: l.firsts[:0], seen: l.seen}
	}
	return x
}
