package kafka

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kfake"
)

// gate is a network in front of a broker that can be shut: connections break,
// and new ones are refused as by a dead process.
type gate struct {
	addr, to string
	mu       sync.Mutex
	ln       net.Listener
	conns    []net.Conn
}

// gated is an embedded broker that is reached through a gate only.
func gated(t *testing.T) (world, *gate) {
	front, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	port := front.Addr().(*net.TCPAddr).Port
	back, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port), kfake.ListenFn(func(string, string) (net.Listener, error) { return back, nil }),
		kfake.BrokerConfigs(map[string]string{"log.segment.bytes": "1048576", "group.initial.rebalance.delay.ms": "0"}))
	ok(t, err)
	t.Cleanup(c.Close)
	g := &gate{addr: front.Addr().String(), to: back.Addr().String()}
	g.serve(front)
	t.Cleanup(g.shut)
	return world{addrs: []string{g.addr}}, g
}

func (g *gate) serve(ln net.Listener) {
	g.mu.Lock()
	g.ln = ln
	g.mu.Unlock()
	go func() {
		for {
			a, err := ln.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", g.to)
			if err != nil {
				a.Close()
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, a, b)
			g.mu.Unlock()
			go func() { _, _ = io.Copy(a, b); a.Close() }()
			go func() { _, _ = io.Copy(b, a); b.Close() }()
		}
	}()
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ln.Close()
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
}

func (g *gate) open(t *testing.T) {
	ln, err := net.Listen("tcp", g.addr)
	ok(t, err)
	g.serve(ln)
}

// All brokers away for less than a session: the membership survives, and what
// is asked meanwhile is answered afterwards.
func TestAnOutageShorterThanTheSessionCostsNoMembership(t *testing.T) {
	w, g := gated(t)
	a := w.app(t)
	m := a.join(t, "i1")
	m.awaitTasks(t, 6)
	before := m.Member()
	for _, outage := range []time.Duration{50 * time.Millisecond, time.Second, 3 * time.Second} {
		g.shut()
		answered := make(chan error)
		go func() {
			answered <- a.b.Commit(ctx(t), m.Member(), seam.Offsets{tp(a.subs[0].Topics[0], 0): {At: 1, Epoch: -1}})
		}()
		time.Sleep(outage) //nolint:forbidigo // the fault is that it takes so long
		g.open(t)
		ok(t, <-answered)
		if n := m.changes(); n != 1 {
			t.Fatalf("after an outage of %v: %+v", outage, m.history[1:])
		}
	}
	if after := m.Member(); after != before {
		t.Fatalf("it was %v, is %v", before, after)
	}
}
