// Package proxy is a network between Kafka clients and brokers that tests can
// break. It knows the requests that pass: a hook sees each one before the
// broker does and says what happens to it, from "the broker never sees it" to
// "the broker acts on it, and the client is told something else".
//
// It sits in the client's dialer, in front of a fake or a real broker alike.
package proxy

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// An Action is what happens to one request. The zero Action lets it pass.
type Action struct {
	LoseRequest bool          // the broker never sees it; the connection is cut
	LoseAnswer  bool          // the broker acts on it; the connection is cut before the answer
	Late        time.Duration // the connection is cut at once, the broker sees the request so much later
	Delay       time.Duration // before the broker sees it
	DelayAnswer time.Duration // before the client sees the answer

	// Answer is what the client is told, instead of the broker's answer. The
	// broker does not see the request, unless Act.
	Answer func(kmsg.Request) kmsg.Response
	Act    bool
}

// A Hook sees a request before the broker does. It runs in the client's
// goroutines, many at a time.
type Hook func(kmsg.Request) Action

// A Proxy is such a network.
type Proxy struct {
	mu   sync.Mutex
	hook Hook
	all  map[*conn]struct{}
	late sync.WaitGroup
}

// New returns a network where everything passes.
func New() *Proxy { return &Proxy{all: map[*conn]struct{}{}} }

// Set changes the hook; nil lets everything pass.
func (p *Proxy) Set(h Hook) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = h
}

// Dial is for kgo.Dialer.
func (p *Proxy) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	w := &conn{Conn: c, p: p, done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[w] = struct{}{}
	return w, nil
}

// Cut resets every connection; new ones can be made.
func (p *Proxy) Cut() {
	p.mu.Lock()
	all := p.all
	p.all = map[*conn]struct{}{}
	p.mu.Unlock()
	for c := range all {
		c.Close()
	}
}

// Wait returns when all late requests have reached the broker.
func (p *Proxy) Wait() { p.late.Wait() }

func (p *Proxy) ask(req kmsg.Request) Action {
	p.mu.Lock()
	h := p.hook
	p.mu.Unlock()
	if h == nil {
		return Action{}
	}
	return h(req)
}

// sendLate brings a request to the broker on a connection of its own, after
// its client has given up, and waits for the broker to have answered it.
func (p *Proxy) sendLate(addr net.Addr, frame []byte, d time.Duration) {
	p.late.Go(func() {
		time.Sleep(d) //nolint:forbidigo // the fault is that it takes so long
		var dialer net.Dialer
		c, err := dialer.DialContext(context.Background(), addr.Network(), addr.String())
		if err != nil {
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Write(frame); err != nil {
			return
		}
		_, _ = readFrame(c) // whatever it is, the broker has acted by now
	})
}

// readFrame reads a size and as many bytes; the frame includes the size.
func readFrame(c net.Conn) ([]byte, error) {
	var size [4]byte
	if err := readFull(c, size[:]); err != nil {
		return nil, err
	}
	f := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
	copy(f, size[:])
	err := readFull(c, f[4:])
	return f, err
}

func readFull(c net.Conn, b []byte) error {
	for n := 0; n < len(b); {
		k, err := c.Read(b[n:])
		n += k
		if err != nil {
			return err
		}
	}
	return nil
}
