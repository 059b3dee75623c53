package proxy

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ask sends an InitProducerID; seen is how many the broker saw of those sent.
func ask(t *testing.T, act Action) (took time.Duration, seen, sent int32, err error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var n, hooked atomic.Int32
	c.ControlKey(kmsg.InitProducerID.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		n.Add(1)
		return nil, nil, false
	})
	p := New()
	p.Set(func(req kmsg.Request) Action {
		if req.Key() == kmsg.InitProducerID.Int16() {
			hooked.Add(1) // the client may try again by itself
			return act
		}
		return Action{}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.Dialer(p.Dial), kgo.RequestRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	id := "id"
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, 10_000, -1, -1
	start := time.Now()
	resp, err := req.RequestWith(context.Background(), cl)
	took = time.Since(start)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	p.Wait()
	return took, n.Load(), hooked.Load(), err
}

func TestActions(t *testing.T) {
	cut := errors.New("cut")
	const d = 60 * time.Millisecond
	for _, c := range []struct {
		name  string
		act   Action
		want  error
		seen  int32
		delay time.Duration
	}{
		{"pass", Action{}, nil, 1, 0},
		{"lose the request", Action{LoseRequest: true}, cut, 0, 0},
		{"lose the answer", Action{LoseAnswer: true}, cut, 1, 0},
		{"late", Action{Late: d}, cut, 1, 0},
		{"delay", Action{Delay: d}, nil, 1, d},
		{"delay the answer", Action{DelayAnswer: d}, nil, 1, d},
		{"answer", Action{Answer: Code(kerr.ProducerFenced)}, kerr.ProducerFenced, 0, 0},
		{"act and answer", Action{Answer: Code(kerr.ProducerFenced), Act: true}, kerr.ProducerFenced, 1, 0},
	} {
		took, seen, sent, err := ask(t, c.act)
		if c.want == cut {
			if err == nil {
				t.Errorf("%s: no error", c.name)
			}
		} else if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if seen != c.seen*sent {
			t.Errorf("%s: the broker saw %d of %d requests", c.name, seen, sent)
		}
		if took < c.delay {
			t.Errorf("%s: took %v", c.name, took)
		}
	}
}
