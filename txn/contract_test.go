package txn

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semelstream/semel/txn/internal/proxy"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The facts about Kafka and its client that the library stands on. Each is
// asked of a real Kafka; none is about time.

// raw are the steps below Producer, without its caution.
type raw struct {
	*one
	cl *kgo.Client
}

func newRaw(t *testing.T) *raw {
	o := newOne(onKafka(t))
	cl := o.client(kgo.TransactionalID(o.id), kgo.TransactionTimeout(20*time.Second))
	o.Cleanup(cl.Close)
	return &raw{o, cl}
}

// send is one TxnOffsetCommit, repeated only for the last transaction's markers.
func (r *raw) send(cl *kgo.Client, m Member, at int64) error {
	pid, epoch, err := cl.ProducerID(r.ctx)
	r.must(err)
	req := offsetsRequest(identity{r.id, pid, epoch}, m, Offsets{{Topic: r.in}: {At: at, Epoch: -1}})
	for {
		resp, err := req.RequestWith(r.ctx, cl)
		r.must(err)
		err = txnOffsetError(resp)
		if errors.Is(err, kerr.ConcurrentTransactions) {
			sleep(r.ctx, time.Millisecond)
			continue
		}
		return err
	}
}

func (r *raw) produce(value string) error {
	return r.cl.ProduceSync(r.ctx, rec(r.out, 0, "k", value)).FirstErr()
}

func (r *raw) state() string {
	f, err := describe(r.ctx, r.ask, r.id)
	r.must(err)
	return f.state
}

// plainOffset is an OffsetFetch that does not wait; -1 is none.
func (r *raw) plainOffset(stable bool) (int64, error) {
	tps := []TP{{Topic: r.in}}
	group := r.member().Group
	req := offsetFetch(group, tps)
	req.RequireStable = stable
	resp, err := req.RequestWith(r.ctx, r.ask)
	r.must(err)
	offs, err := fetchedOffsets(resp, group, tps)
	if o, ok := offs[tps[0]]; ok {
		return o.At, err
	}
	return -1, err
}

func TestContractOffsetsAloneSendNoEndTxnAndLeak(t *testing.T) {
	for _, end := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		t.Run(fmt.Sprint("commit=", bool(end)), func(t *testing.T) {
			r := newRaw(t)
			r.must(r.cl.BeginTransaction())
			r.must(r.send(r.cl, r.member(), 7))
			r.must(r.cl.EndTransaction(r.ctx, end))
			if s := r.state(); s != "Ongoing" {
				t.Errorf("after EndTransaction the broker says %s", s)
			}
			if _, err := r.plainOffset(true); !errors.Is(err, kerr.UnstableOffsetCommit) {
				t.Error("stable fetch:", err)
			}
			r.must(r.cl.BeginTransaction())
			r.must(r.produce("next"))
			r.must(r.cl.EndTransaction(r.ctx, kgo.TryCommit))
			if at := r.stableAt(); at != 7 {
				t.Errorf("committed %d: the offset did not leak into the next transaction", at)
			}
		})
	}
}

func TestContractAddedPartitionsAloneSendNoEndTxn(t *testing.T) {
	o := newOne(onKafka(t))
	o.must(o.p.Add(o.ctx, []TP{{Topic: o.out}}))
	o.must(o.p.cl.EndTransaction(o.ctx, kgo.TryAbort))
	if f, err := describe(o.ctx, o.ask, o.id); err != nil || f.state != "Ongoing" {
		t.Error(f.state, err)
	}
}

func TestContractGroupFencesTransactionalOffsets(t *testing.T) {
	r := newRaw(t)
	group := name("group")
	_, member := r.world.member(group, r.in, kgo.InstanceID("inst"))
	good := member()
	with := func(change func(*Member)) Member {
		m := good
		change(&m)
		return m
	}
	for _, c := range []struct {
		name string
		m    Member
		want error
	}{
		{"as it is", good, nil},
		{"no instance id", with(func(m *Member) { m.Instance = "" }), nil},
		{"stale generation", with(func(m *Member) { m.Generation-- }), kerr.IllegalGeneration},
		{"future generation", with(func(m *Member) { m.Generation++ }), kerr.IllegalGeneration},
		{"unknown member", with(func(m *Member) { m.ID, m.Instance = "nobody", "" }), kerr.UnknownMemberID},
		{"unknown group", with(func(m *Member) { m.Group, m.Instance = name("none"), "" }), kerr.IllegalGeneration},
		{"another's instance id", with(func(m *Member) { m.Instance = "other" }), kerr.UnknownMemberID},
		{"another member of the instance", with(func(m *Member) { m.ID = "nobody" }), kerr.FencedInstanceID},
		// No fence at all: this is why Prepare refuses it.
		{"no member", Member{Group: group, Generation: -1}, nil},
	} {
		r.must(r.cl.BeginTransaction())
		r.must(r.produce(c.name))
		if err := r.send(r.cl, c.m, 3); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		r.must(r.cl.EndTransaction(r.ctx, kgo.TryAbort))
	}
}

func TestContractOffsetsBesideFlushAfterAdd(t *testing.T) {
	o := newOne(onKafka(t))
	for i := range 50 {
		o.must(o.step(o.p, fmt.Sprint(i), int64(i+1))) // Prepare runs both side by side
		o.must(o.p.End(o.ctx, true))
	}
	if got := o.stableAt(); got != 50 {
		t.Errorf("committed %d", got)
	}
	if n := len(o.committed(o.out)); n != 100 {
		t.Errorf("%d records", n)
	}
}

func TestContractInitByAnybodyFencesAtOnce(t *testing.T) {
	o := newOne(onKafka(t))
	o.must(o.step(o.p, "zombie", 9))
	o.must(Fence(o.ctx, o.ask, Scope{}, o.id))
	if at := o.stableAt(); at != -1 {
		t.Errorf("committed %d", at)
	}
	c, err := o.adm.ListCommittedOffsets(o.ctx, o.out)
	o.must(err)
	o.until("the last stable offset to be the end", func() bool {
		c, err = o.adm.ListCommittedOffsets(o.ctx, o.out)
		o.must(err)
		x, _ := c.Lookup(o.out, 0)
		return x.Offset == o.ends(o.out)[TP{Topic: o.out}]
	})
	o.expect("", -1)
}

func TestContractZombieStaysFenced(t *testing.T) {
	for _, first := range []string{"produce", "offsets", "commit", "abort"} {
		t.Run(first, func(t *testing.T) {
			r := newRaw(t)
			r.must(r.cl.BeginTransaction())
			r.must(r.produce("zombie"))
			r.must(Fence(r.ctx, r.ask, Scope{}, r.id))
			switch first {
			case "produce":
				if err := r.produce("zombie"); Judge(err) != OutcomeNewProducer {
					t.Error("produce:", err)
				}
			case "offsets":
				if err := r.send(r.cl, r.member(), 3); Judge(err) != OutcomeNewProducer {
					t.Error("offsets:", err)
				}
			case "commit":
				if err := r.cl.EndTransaction(r.ctx, kgo.TryCommit); Judge(err) != OutcomeNewProducer {
					t.Error("commit:", err)
				}
			}
			// From here on the client may well say nil: only the first answer
			// counts, which is why a Producer latches it.
			r.cl.EndTransaction(r.ctx, kgo.TryAbort)
			if r.cl.BeginTransaction() == nil {
				r.produce("zombie")
				r.cl.EndTransaction(r.ctx, kgo.TryCommit)
			}
			r.cl.Close()
			p := r.producer(r.id)
			r.must(r.step(p, "alive", 4))
			r.must(p.End(r.ctx, true))
			r.expect("alive", 4)
		})
	}
}

func TestContractOnlyStableOffsetsSeeACommit(t *testing.T) {
	r := newRaw(t)
	for i := range int64(20) {
		r.must(r.cl.BeginTransaction())
		r.must(r.produce(fmt.Sprint(i)))
		r.must(r.send(r.cl, r.member(), i+1))
		if at, err := r.plainOffset(false); err != nil || at == i+1 {
			t.Fatalf("a plain fetch sees %d of the open transaction (%v)", at, err)
		}
		if _, err := r.plainOffset(true); !errors.Is(err, kerr.UnstableOffsetCommit) {
			t.Fatal("a stable fetch:", err)
		}
		r.must(r.cl.EndTransaction(r.ctx, kgo.TryCommit))
		// The markers may not be written yet; a plain fetch may still be old.
		if at := r.stableAt(); at != i+1 {
			t.Fatalf("stable offset %d after commit of %d", at, i+1)
		}
	}
}

// What a client that gave up believes does not matter: InitProducerID and the
// stable offsets tell what readers see.
func TestContractUnknownOutcomeIsDecidedByInitAndStableOffsets(t *testing.T) {
	o := newOne(onKafka(t))
	want := ""
	at := int64(-1)
	o.p.Close()
	for i := range 16 {
		p := o.producer(o.id, kgo.RetryTimeout(100*time.Millisecond))
		o.must(o.step(p, fmt.Sprint(i), int64(i)))
		act := []proxy.Action{{LoseRequest: true}, {LoseAnswer: true}, {Late: 300 * time.Millisecond},
			{Answer: proxy.Code(kerr.CoordinatorLoadInProgress), Act: true}}[i%4]
		o.net.Set(func(req kmsg.Request) proxy.Action {
			if req.Key() == kmsg.EndTxn.Int16() {
				return act
			}
			return proxy.Action{}
		})
		ctx, cancel := context.WithTimeout(o.ctx, 250*time.Millisecond)
		err := p.End(ctx, true)
		cancel()
		o.net.Set(nil)
		if Judge(err) != OutcomeUnknown {
			t.Fatalf("%d: commit says %v", i, err)
		}
		p.Close()
		o.producer(o.id).Close()
		switch now := o.stableAt(); now {
		case int64(i):
			want += fmt.Sprint(" ", i)
			at = now
		case at:
		default:
			t.Fatalf("%d: stable offset %d, before it was %d", i, now, at)
		}
	}
	o.net.Wait() // late copies have arrived, and changed nothing
	if len(want) > 0 {
		want = want[1:]
	}
	o.expect(want, at)
}

func TestContractPlainCommitBeatsAPendingOne(t *testing.T) {
	r := newRaw(t)
	r.must(r.cl.BeginTransaction())
	r.must(r.produce("x"))
	r.must(r.send(r.cl, r.member(), 20))
	r.must(CommitOffsets(r.ctx, r.ask, r.member(), Offsets{{Topic: r.in}: {At: 30, Epoch: -1}}))
	r.must(r.cl.EndTransaction(r.ctx, kgo.TryCommit))
	if at := r.stableAt(); at != 30 {
		t.Error("committed", at)
	}
}

// Two producers of one owner commit offsets of one partition (see
// Producer.CommitOffsets); their markers come in any order.
func TestContractLaterOffsetCommitWinsWhateverTheOrderOfMarkers(t *testing.T) {
	r := newRaw(t)
	begin := func(at int64) *identity {
		k := &identity{id: name("offsets")}
		r.must(k.init(r.ctx, r.ask))
		req := offsetsRequest(*k, r.member(), Offsets{{Topic: r.in}: {At: at, Epoch: -1}})
		resp, err := req.RequestWith(r.ctx, r.ask)
		r.must(err)
		r.must(txnOffsetError(resp))
		return k
	}
	first, second := begin(20), begin(30)
	r.must(endByHand(r.ctx, r.ask, second))
	r.must(endByHand(r.ctx, r.ask, first))
	if at := r.stableAt(); at != 30 {
		t.Error("the earlier commit, whose transaction ended later, won: committed", at)
	}
	first, second = begin(40), begin(50)
	r.must(endByHand(r.ctx, r.ask, first))
	r.must(endByHand(r.ctx, r.ask, second))
	if at := r.stableAt(); at != 50 {
		t.Error("committed", at)
	}
}

// restored reads a log as a restore does, and returns where it ended and how
// many records it saw.
func (w *world) restored(topic string) (pos, end int64, n int) {
	w.Helper()
	tp := TP{Topic: topic}
	end = w.ends(topic)[tp]
	s, err := w.adm.ListStartOffsets(w.ctx, topic)
	w.must(err)
	x, _ := s.Lookup(topic, 0)
	pos = x.Offset
	cl := w.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(pos)}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(50*time.Millisecond))
	defer cl.Close()
	for pos < end {
		fs := cl.PollFetches(w.ctx)
		w.must(w.ctx.Err())
		fs.EachRecord(func(r *kgo.Record) {
			pos = r.Offset + 1
			if !r.Attrs.IsControl() {
				n++
			}
		})
	}
	return pos, end, n
}

func TestContractPositionReachesTheHighWatermark(t *testing.T) {
	w := onKafka(t)
	topic := w.topic("changelog", 1)
	p := w.producer(name("tx"))
	txn := func(n int, commit bool) {
		w.must(p.Add(w.ctx, []TP{{Topic: topic}}))
		var recs []*kgo.Record
		for i := range n {
			recs = append(recs, rec(topic, 0, fmt.Sprint(i), "v"))
		}
		p.Produce(recs)
		w.must(p.Prepare(w.ctx, Member{}, nil))
		w.must(p.End(w.ctx, commit))
	}
	// The end is taken before; markers that were on their way then come on top.
	expect := func(what string, records int) {
		t.Helper()
		if pos, end, n := w.restored(topic); pos < end || n != records {
			t.Errorf("%s: position %d, high watermark %d, %d records", what, pos, end, n)
		}
	}
	expect("never written", 0)
	txn(3, false)
	expect("only aborted", 0)
	txn(3, true)
	expect("a marker at the end", 3)
	txn(3, false)
	txn(500, false)
	expect("aborted at the end", 3)
	before := kadm.Offsets{}
	before.Add(kadm.Offset{Topic: topic, At: w.ends(topic)[TP{Topic: topic}]})
	_, err := w.adm.DeleteRecords(w.ctx, before)
	w.must(err)
	expect("all deleted", 0)
}

func TestContractRestoreWaitsForAnOpenTransaction(t *testing.T) {
	for _, commit := range []bool{true, false} {
		w := onKafka(t)
		topic := w.topic("changelog", 1)
		p := w.producer(name("tx"))
		w.must(p.Add(w.ctx, []TP{{Topic: topic}}))
		p.Produce([]*kgo.Record{rec(topic, 0, "k", "v")})
		w.must(p.Prepare(w.ctx, Member{}, nil))
		end := w.ends(topic)[TP{Topic: topic}]
		if end != 1 {
			t.Fatalf("high watermark %d with one open record", end)
		}
		type result struct {
			pos int64
			n   int
		}
		got := make(chan result, 1)
		go func() {
			pos, _, n := w.restored(topic)
			got <- result{pos, n}
		}()
		if c, err := w.adm.ListCommittedOffsets(w.ctx, topic); err != nil {
			t.Fatal(err)
		} else if x, _ := c.Lookup(topic, 0); x.Offset != 0 {
			t.Errorf("last stable offset %d", x.Offset)
		}
		select {
		case r := <-got:
			t.Errorf("restore ended at %d before the transaction was decided", r.pos)
		default:
		}
		w.must(p.End(w.ctx, commit))
		want := 0
		if commit {
			want = 1
		}
		if r := <-got; r.n != want || r.pos < end {
			t.Errorf("commit %v: %d records, position %d", commit, r.n, r.pos)
		}
	}
}

func TestContractPositionInCompactedLog(t *testing.T) {
	w := onKafka(t)
	topic := w.topic("compacted", 1, "cleanup.policy", "compact", "segment.ms", "100", "min.cleanable.dirty.ratio", "0.01",
		"delete.retention.ms", "0", "max.compaction.lag.ms", "100")
	p := w.producer(name("tx"))
	for round := range 6 {
		w.must(p.Add(w.ctx, []TP{{Topic: topic}}))
		var recs []*kgo.Record
		for i := range 50 {
			r := rec(topic, 0, fmt.Sprint("k", i%5), fmt.Sprint(round))
			if round == 4 && i >= 45 {
				r.Value = nil
			}
			recs = append(recs, r)
		}
		p.Produce(recs)
		w.must(p.Prepare(w.ctx, Member{}, nil))
		w.must(p.End(w.ctx, round%2 == 0))
		sleep(w.ctx, 150*time.Millisecond) // segments roll by time
	}
	if pos, end, n := w.restored(topic); pos < end || n == 0 {
		t.Errorf("position %d, high watermark %d, %d records", pos, end, n)
	}
}

func TestContractFeaturesTellTheTransactionVersion(t *testing.T) {
	w := onKafka(t)
	have, possible, err := transactionVersion(w.ctx, w.ask)
	if err != nil || have < 2 || possible < have {
		t.Errorf("transaction.version %d of %d, %v", have, possible, err)
	}
}

// No request of this package writes markers: that would lose the records of a
// healthy transaction whose commit then reports success.
func TestContractNobodyWritesMarkers(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		o := newOne(w)
		w.net.Set(func(req kmsg.Request) proxy.Action {
			if req.Key() == kmsg.WriteTxnMarkers.Int16() {
				t.Error("markers were written by hand")
			}
			return proxy.Action{}
		})
		cl := w.client(kgo.Dialer(w.net.Dial))
		defer cl.Close()
		w.must(o.step(o.p, "a", 1))
		_, err := FenceStrangers(w.ctx, cl, Scope{}, o.id, func(string) bool { return false })
		w.must(err)
		o.expect("", -1)
	})
}
