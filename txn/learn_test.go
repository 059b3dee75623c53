package txn

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semelstream/semel/txn/internal/proxy"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// busy is a logger that can hold the client's metadata goroutine, as a busy
// machine may.
type busy struct {
	armed   atomic.Bool
	held    chan struct{}
	release chan struct{}
}

func (*busy) Level() kgo.LogLevel { return kgo.LogLevelInfo }

func (b *busy) Log(_ kgo.LogLevel, msg string, _ ...any) {
	if strings.HasSuffix(msg, "metadata update triggered") && b.armed.CompareAndSwap(true, false) {
		close(b.held)
		<-b.release
	}
}

// The client may have sent all records of a topic before it has noted that
// there is such a topic; a commit in between would be an abort.
func TestEndWaitsForTheClientToLearnItsTopics(t *testing.T) {
	w := onFake(t)
	b := &busy{held: make(chan struct{}), release: make(chan struct{})}
	release := sync.OnceFunc(func() { close(b.release) })
	t.Cleanup(release)
	p := w.producer(name("tx"), kgo.WithLogger(b))
	tp := TP{Topic: w.topic("out", 1)}
	write := func() {
		w.must(p.Add(w.ctx, []TP{tp}))
		p.Produce([]*kgo.Record{rec(tp.Topic, 0, "k", "v")})
		w.must(p.Prepare(w.ctx, Member{}, nil))
	}

	write()
	b.armed.Store(true)
	p.cl.ForceMetadataRefresh()
	<-b.held
	var released atomic.Bool
	w.net.Set(func(req kmsg.Request) proxy.Action {
		if req.Key() == kmsg.EndTxn.Int16() && !released.Load() {
			t.Error("EndTxn was sent while the client was still busy with its topics")
		}
		return proxy.Action{}
	})
	time.AfterFunc(100*time.Millisecond, func() { released.Store(true); release() })
	w.must(p.End(w.ctx, true))

	b.armed.Store(false)
	write() // to a topic that the client knows: nothing to wait for
	w.must(p.End(w.ctx, true))
	if n := len(w.committed(tp.Topic)); n != 2 {
		t.Errorf("two commits left %d records", n)
	}
}

// counting counts the clients that are made.
type counting struct{ made atomic.Int32 }

func (c *counting) OnNewClient(*kgo.Client) { c.made.Add(1) }

// A logger of the caller's is used too, and a client is made once if it can be.
func TestTheWitnessPassesOnWhatItReads(t *testing.T) {
	w := onFake(t)
	for _, c := range []struct {
		wrap    func(kgo.Logger) kgo.Logger
		clients int32
	}{{func(l kgo.Logger) kgo.Logger { return l }, 2}, {Witness, 1}} {
		b, n := &busy{held: make(chan struct{}), release: make(chan struct{})}, new(counting)
		close(b.release)
		b.armed.Store(true)
		p := w.producer(name("tx"), kgo.WithLogger(c.wrap(b)), kgo.WithHooks(n))
		p.cl.ForceMetadataRefresh()
		<-b.held
		if n.made.Load() != c.clients {
			t.Errorf("%d clients were made, want %d", n.made.Load(), c.clients)
		}
	}
}

// What the client did is taken from its log: if that says that it aborted, the
// commit has failed, whatever the client returns; if it says nothing, nobody
// knows.
func TestACommitThatWasAnAbort(t *testing.T) {
	w := onFake(t)
	p := w.producer(name("tx"))
	tp := TP{Topic: w.topic("out", 1)}
	w.must(p.Add(w.ctx, []TP{tp}))
	p.Produce([]*kgo.Record{rec(tp.Topic, 0, "k", "v")})
	w.must(p.Prepare(w.ctx, Member{}, nil))
	p.cl.PurgeTopicsFromProducing(tp.Topic) // now it knows of no record
	if err := p.End(w.ctx, true); Judge(err) != OutcomeAbort {
		t.Errorf("a commit for which the client sent an abort: %v, judged %s", err, Judge(err))
	}
	p.witness.forget()
	if err := p.witness.committed(p.id); Judge(err) != OutcomeUnknown {
		t.Errorf("a commit of which the client says nothing: %v, judged %s", err, Judge(err))
	}
}
