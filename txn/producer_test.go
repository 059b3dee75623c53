package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/txn/internal/proxy"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// one is a world with an input, an output, a member and a producer.
type one struct {
	*world
	in, out, id string
	member      func() Member
	p           *Producer
}

func newOne(w *world) *one {
	o := &one{world: w, in: w.topic("in", 2), out: w.topic("out", 2), id: name("tx")}
	group := name("group")
	_, o.member = w.member(group, o.in)
	o.p = w.producer(o.id)
	return o
}

func (o *one) stableAt() int64 { return o.stable(o.member().Group, o.in, 0) }

// step produces one value and prepares offset at.
func (o *one) step(p *Producer, value string, at int64) error {
	if err := p.Add(o.ctx, []TP{{Topic: o.out}, {Topic: o.out, Partition: 1}}); err != nil {
		return err
	}
	p.Produce([]*kgo.Record{rec(o.out, 0, "k", value), rec(o.out, 1, "k", value)})
	return p.Prepare(o.ctx, o.member(), Offsets{{Topic: o.in}: {At: at, Epoch: -1, Metadata: "meta " + value}})
}

func (o *one) values() string {
	var s []string
	for _, r := range o.committed(o.out) {
		if r.Partition == 0 {
			s = append(s, string(r.Value))
		}
	}
	return strings.Join(s, " ")
}

func (o *one) expect(values string, at int64) {
	o.Helper()
	if got := o.stableAt(); got != at {
		o.Errorf("committed offset %d, want %d", got, at)
	}
	if got := o.values(); got != values {
		o.Errorf("committed values %q, want %q", got, values)
	}
}

func TestProducerCommitsAndAborts(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		o := newOne(w)
		for i, commit := range []bool{true, false, true, true, false} {
			w.must(o.step(o.p, fmt.Sprint(i), int64(i+1)))
			w.must(o.p.End(w.ctx, commit))
		}
		o.expect("0 2 3", 4)
		offs, err := Committed(w.ctx, w.ask, o.member().Group, []TP{{Topic: o.in}, {Topic: o.in, Partition: 1}}, nil)
		w.must(err)
		if got := offs[TP{Topic: o.in}]; len(offs) != 1 || got.Metadata != "meta 3" || got.Epoch != -1 {
			t.Errorf("offsets %+v", offs)
		}
	})
}

func TestProduceSetsOffsets(t *testing.T) {
	o := newOne(onFake(t))
	o.must(o.step(o.p, "a", 1))
	o.must(o.p.End(o.ctx, true))
	o.must(o.p.Add(o.ctx, []TP{{Topic: o.out}}))
	r := rec(o.out, 0, "k", "b")
	o.p.Produce([]*kgo.Record{r})
	o.must(o.p.Prepare(o.ctx, Member{}, nil))
	if r.Offset != 2 { // after "a" and its marker
		t.Errorf("offset %d", r.Offset)
	}
	o.must(o.p.End(o.ctx, true))
	o.expect("a b", 1)
}

// Kafka would accept such offsets with no fence at all.
func TestPrepareRefusesOffsetsWithoutAMember(t *testing.T) {
	for _, m := range []Member{{Group: "g", Generation: -1}, {Group: "g", Generation: 3}, {Group: "g", ID: "m", Generation: -1}, {ID: "m", Generation: 1}} {
		o := newOne(onFake(t))
		o.net.Set(func(req kmsg.Request) proxy.Action {
			if req.Key() == kmsg.TxnOffsetCommit.Int16() {
				t.Error("offsets were sent as", m)
			}
			return proxy.Action{}
		})
		o.must(o.p.Add(o.ctx, []TP{{Topic: o.out}}))
		o.p.Produce([]*kgo.Record{rec(o.out, 0, "k", "v")})
		if err := o.p.Prepare(o.ctx, m, Offsets{{Topic: o.in}: {At: 1}}); !errors.Is(err, ErrNoMember) {
			t.Errorf("as %+v: %v", m, err)
		}
		if err := CommitOffsets(o.ctx, o.ask, m, Offsets{{Topic: o.in}: {At: 1}}); !errors.Is(err, ErrNoMember) {
			t.Errorf("plainly as %+v: %v", m, err)
		}
	}
}

func TestTransactionWithoutRecordsIsRefused(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		o := newOne(w)
		w.must(o.p.Add(w.ctx, []TP{{Topic: o.out}}))
		if err := o.p.Prepare(w.ctx, o.member(), Offsets{{Topic: o.in}: {At: 7}}); !errors.Is(err, ErrEmpty) {
			t.Fatal("prepare:", err)
		}
		o.p.Close()
		o.p = w.producer(o.id)
		w.must(o.p.Add(w.ctx, []TP{{Topic: o.out}}))
		if err := o.p.End(w.ctx, false); !errors.Is(err, ErrEmpty) {
			t.Fatal("abort:", err)
		}
		o.p.Close()
		// Nothing leaks into what comes after.
		o.p = w.producer(o.id)
		w.must(o.step(o.p, "a", 1))
		w.must(o.p.End(w.ctx, true))
		o.expect("a", 1)
	})
}

func TestFirstErrorIsLatched(t *testing.T) {
	o := newOne(onFake(t))
	o.net.Set(func(req kmsg.Request) proxy.Action {
		if req.Key() == kmsg.TxnOffsetCommit.Int16() {
			return proxy.Action{Answer: proxy.Code(kerr.IllegalGeneration)}
		}
		return proxy.Action{}
	})
	err := o.step(o.p, "a", 1)
	if !errors.Is(err, kerr.IllegalGeneration) || Judge(err) != OutcomeRejoin {
		t.Fatal(err)
	}
	o.net.Set(nil)
	for what, err := range map[string]error{
		"Init": o.p.Init(o.ctx), "Add": o.p.Add(o.ctx, []TP{{Topic: o.out}}), "Prepare": o.p.Prepare(o.ctx, o.member(), nil),
		"commit": o.p.End(o.ctx, true), "abort": o.p.End(o.ctx, false),
	} {
		if !errors.Is(err, ErrSpent) || !errors.Is(err, kerr.IllegalGeneration) {
			t.Errorf("%s after an error: %v", what, err)
		}
	}
	o.p.Close()
	o.p = o.producer(o.id)
	o.must(o.step(o.p, "b", 2))
	o.must(o.p.End(o.ctx, true))
	o.expect("b", 2)
}

func TestProduceErrorNamesItsRecordAndWins(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		o := newOne(w)
		w.must(o.p.Add(w.ctx, []TP{{Topic: o.out}}))
		w.net.Set(func(req kmsg.Request) proxy.Action {
			if req.Key() == kmsg.TxnOffsetCommit.Int16() {
				return proxy.Action{Delay: time.Second} // the record's error is there first
			}
			return proxy.Action{}
		})
		secret := "do not log this"
		bad := rec(o.out, 0, "k", strings.Repeat(secret, 200_000))
		o.p.Produce([]*kgo.Record{rec(o.out, 0, "k", "good"), bad, rec(o.out, 0, "k", "good")})
		m := o.member()
		m.Generation += 10
		err := o.p.Prepare(w.ctx, m, Offsets{{Topic: o.in}: {At: 1}})
		pe, ok := errors.AsType[*ProduceError](err)
		if !ok || pe.Record != bad || Judge(err) != OutcomeFatal {
			t.Fatalf("%.200v, outcome %v", err, Judge(err))
		}
		if strings.Contains(err.Error(), secret) {
			t.Error("the error has the record's value")
		}
		o.p.Close()
		w.producer(o.id)
		o.expect("", -1)
	})
}

func TestFirstRecordsThatAreRefusedEndTheProducer(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		o := newOne(w)
		w.must(o.p.Add(w.ctx, []TP{{Topic: o.out}}))
		big := rec(o.out, 0, "k", strings.Repeat("x", 2<<20))
		err := o.p.ProduceFirst(w.ctx, []*kgo.Record{rec(o.out, 0, "k", "v"), big})
		var pe *ProduceError
		if !errors.As(err, &pe) || pe.Record != big {
			t.Fatalf("%v", err)
		}
		if err := o.p.Prepare(w.ctx, o.member(), Offsets{{Topic: o.in}: {At: 7}}); !errors.Is(err, ErrSpent) {
			t.Errorf("Prepare after it: %v", err)
		}
	})
}

func TestCommitOffsetsIsFenced(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		o := newOne(w)
		at := func(n int64) Offsets { return Offsets{{Topic: o.in}: {At: n, Epoch: -1}} }
		w.must(CommitOffsets(w.ctx, w.ask, o.member(), at(3)))
		stale, other := o.member(), o.member()
		stale.Generation--
		other.ID = "somebody else"
		for _, m := range []Member{stale, other} {
			if err := CommitOffsets(w.ctx, w.ask, m, at(4)); Judge(err) != OutcomeRejoin {
				t.Errorf("as %+v: %v", m, err)
			}
		}
		o.expect("", 3)
	})
}

func TestInitEndsWithItsContext(t *testing.T) {
	w := onFake(t)
	w.net.Set(func(req kmsg.Request) proxy.Action {
		if req.Key() == kmsg.InitProducerID.Int16() {
			return proxy.Action{Answer: proxy.Code(kerr.ConcurrentTransactions)}
		}
		return proxy.Action{}
	})
	p := w.bareProducer(name("tx"))
	ctx, cancel := context.WithTimeout(w.ctx, 50*time.Millisecond)
	defer cancel()
	if err := p.Init(ctx); !errors.Is(err, context.DeadlineExceeded) || Judge(err) != OutcomeNone {
		t.Fatal(err)
	}
}

func TestCommittedCallsBlockedUntilTheOwnerIsFenced(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		o := newOne(w)
		w.must(o.step(o.p, "a", 5))
		calls := 0
		offs, err := Committed(w.ctx, w.ask, o.member().Group, []TP{{Topic: o.in}}, func(tries int) {
			calls++
			if tries != calls {
				t.Errorf("call %d says %d", calls, tries)
			}
			if tries == 3 {
				fenced, err := FenceStrangers(w.ctx, w.ask, Scope{}, o.id[:len(o.id)-2], func(id string) bool { return id != o.id })
				if err != nil || len(fenced) != 1 || fenced[0] != o.id {
					t.Errorf("fenced %v, %v", fenced, err)
				}
			}
		})
		w.must(err)
		if len(offs) != 0 || calls < 3 {
			t.Errorf("offsets %v after %d calls", offs, calls)
		}
		if err := o.p.End(w.ctx, true); Judge(err) != OutcomeUnknown {
			t.Errorf("commit of a fenced producer: %v", err)
		}
		o.expect("", -1)
	})
}

func TestFenceStrangersSparesTheLiving(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		o := newOne(w)
		w.must(o.step(o.p, "a", 1))
		fenced, err := FenceStrangers(w.ctx, w.ask, Scope{}, o.id, func(string) bool { return true })
		if err != nil || len(fenced) > 0 {
			t.Fatal(fenced, err)
		}
		w.must(o.p.End(w.ctx, true))
		o.expect("a", 1)
	})
}

func TestCheckCluster(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.must(CheckCluster(w.ctx, w.ask))
	})
	err := unfit("broker:9092", 1, 2)
	for _, s := range []string{"SEMEL-TXN-VERSION", "is 1", "broker:9092", "needs 2", "kafka-features --bootstrap-server broker:9092 upgrade --feature transaction.version=2"} {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
	if !errors.Is(err, ErrClusterUnfit) {
		t.Error("not ErrClusterUnfit")
	}
}

// Markers that come late are what kfake cannot show: EndTxn answers, and the
// next transaction is refused until they are written.
func TestAddWaitsForTheMarkersOfTheLastTransaction(t *testing.T) {
	o := newOne(onFake(t))
	refusals := 0
	o.net.Set(func(req kmsg.Request) proxy.Action {
		if req.Key() == kmsg.AddPartitionsToTxn.Int16() {
			if refusals++; refusals <= 30 {
				return proxy.Action{Answer: proxy.Code(kerr.ConcurrentTransactions)}
			}
		}
		return proxy.Action{}
	})
	o.must(o.step(o.p, "a", 1))
	o.must(o.p.End(o.ctx, true))
	if refusals < 31 {
		t.Error("refused", refusals)
	}
	o.expect("a", 1)
}
