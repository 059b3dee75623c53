package txn

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semelstream/semel/txn/internal/proxy"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A fault is a line of testdata/faults.txt.
type fault struct {
	line              int
	request, what     string
	times             int // -1: until-init
	costs, costsCode  string
	noOutput          bool
	act               proxy.Action
	key               int16
	mu                sync.Mutex
	left, hits, inits int
}

func (f *fault) String() string {
	often := fmt.Sprint(f.times)
	if f.times < 0 {
		often = "until-init"
	}
	return fmt.Sprintf("%s/%s/%s", f.request, f.what, often)
}

// requests are the steps by the names that the file uses.
var requests = map[string]kmsg.Key{
	"FindCoordinator": kmsg.FindCoordinator, "DescribeTransactions": kmsg.DescribeTransactions, "InitProducerID": kmsg.InitProducerID, "AddPartitionsToTxn": kmsg.AddPartitionsToTxn,
	"Produce": kmsg.Produce, "TxnOffsetCommit": kmsg.TxnOffsetCommit, "EndTxn": kmsg.EndTxn, "OffsetFetch": kmsg.OffsetFetch,
}

func readFaults(t *testing.T) []*fault {
	file, err := os.Open("testdata/faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all []*fault
	sc := bufio.NewScanner(file)
	for n := 1; sc.Scan(); n++ {
		words := strings.Fields(sc.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		f, err := parseFault(words)
		if err != nil {
			t.Fatalf("testdata/faults.txt:%d: %v", n, err)
		}
		f.line = n
		all = append(all, f)
	}
	return all
}

func parseFault(w []string) (*fault, error) {
	f := &fault{request: w[0], what: w[1], times: 1}
	step, kind, _ := strings.Cut(w[0], "/")
	f.noOutput = kind == "no-output"
	key, ok := requests[step]
	if !ok {
		return nil, fmt.Errorf("no request %s", w[0])
	}
	f.key = key.Int16()
	rest := w[3:]
	switch w[2] {
	case "once":
	case "until-init":
		f.times = -1
	default:
		fmt.Sscan(w[2], &f.times)
		rest = w[4:]
	}
	f.costs = rest[0]
	if len(rest) > 1 {
		f.costsCode = rest[1]
	}
	f.left = f.times
	var err error
	f.act, err = parseAction(f.what)
	return f, err
}

func parseAction(what string) (proxy.Action, error) {
	switch what {
	case "lose-request":
		return proxy.Action{LoseRequest: true}, nil
	case "lose-answer":
		return proxy.Action{LoseAnswer: true}, nil
	case "late":
		return proxy.Action{Late: time.Second}, nil
	case "delay":
		return proxy.Action{Delay: 300 * time.Millisecond}, nil
	}
	code, act := strings.CutPrefix(what, "act+")
	e := codeNamed(code)
	if e == nil {
		return proxy.Action{}, fmt.Errorf("no error code %s", code)
	}
	return proxy.Action{Answer: proxy.Code(e), Act: act}, nil
}

func codeNamed(message string) *kerr.Error {
	for c := int16(-1); c < 200; c++ {
		if e, ok := errors.AsType[*kerr.Error](kerr.ErrorForCode(c)); ok && e.Message == message {
			return e
		}
	}
	return nil
}

// hook breaks the next requests.
func (f *fault) hook(req kmsg.Request) proxy.Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	if req.Key() == kmsg.InitProducerID.Int16() {
		f.inits++
		if f.times < 0 {
			f.left = 0
		}
	}
	if req.Key() != f.key || f.left == 0 {
		return proxy.Action{}
	}
	f.left--
	f.hits++
	return f.act
}

func (f *fault) hit() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// early says that the step is only met when a Session opens.
func (f *fault) early() bool {
	return f.request == "FindCoordinator" || f.request == "DescribeTransactions" || f.request == "InitProducerID" || f.request == "OffsetFetch"
}

func TestFaults(t *testing.T) {
	for _, f := range readFaults(t) {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			runFault(t, onFake(t), f)
		})
	}
}

func TestFaultsOnKafka(t *testing.T) {
	onKafka(t)
	for _, f := range readFaults(t) {
		t.Run(f.String(), func(t *testing.T) { runFault(t, onKafka(t), f) })
	}
}

func runFault(t *testing.T, w *world, f *fault) {
	c := newCopying(w)
	var opts []kgo.Opt
	if f.times < 0 { // the client gives up soon
		opts = append(opts, kgo.RetryTimeout(200*time.Millisecond))
	}
	if f.early() {
		w.net.Set(f.hook)
	}
	id := name("tx")
	r := c.start(id, opts...)
	c.feed(5)
	c.copied(r)
	if !f.early() {
		w.net.Set(f.hook)
	}
	if f.noOutput {
		c.feedDropped()
		w.until("the fault", func() bool { return f.hit() > 0 })
	}
	c.feed(5)
	if f.costs == "fatal" {
		<-r.done
		if Judge(r.err) != OutcomeFatal || !strings.Contains(r.err.Error(), f.costsCode) {
			t.Fatalf("Run ended with %v, want %s", r.err, f.costsCode)
		}
		w.net.Set(nil)
		if f, err := describe(w.ctx, w.ask, id); err != nil || f.state == "Ongoing" {
			t.Errorf("the Session left its transaction behind: %s, %v", f.state, err)
		}
		r = c.start(name("tx"))
	}
	c.copied(r)
	c.feed(5)
	c.copied(r)
	w.net.Wait()
	c.check()
	r.stop()
	if r.err != nil {
		t.Error("Run:", r.err)
	}
	if f.hit() == 0 {
		t.Error("the fault was never met")
	}
	if f.times > 0 && f.hit() < f.times && f.costs != "fatal" && f.costs != "any" {
		t.Errorf("the fault was met %d times, not %d", f.hit(), f.times)
	}
	again := c.handled.Load() > int64(c.fed)
	if f.costs == "through" && again || f.costs == "again" && !again {
		t.Errorf("%d records were handled %d times, the line says %s", c.fed, c.handled.Load(), f.costs)
	}
}
