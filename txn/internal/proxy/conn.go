package proxy

import (
	"encoding/binary"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// errLost is what a client sees of a connection that a broker reset.
var errLost error = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}

// A conn is the client's end of a connection to one broker. The client writes
// whole requests, in as many pieces as it likes, and reads the answers in the
// order of the requests, as Kafka promises.
type conn struct {
	net.Conn
	p    *Proxy
	out  []byte // of a request that is not complete yet
	in   []byte // rest of the answer being read
	once sync.Once
	done chan struct{}
	rd   atomic.Int64 // read deadline, unix ns
	mu   sync.Mutex
	wait []pending
}

// pending is a request whose answer the client will read next.
type pending struct {
	act    Action
	answer []byte // instead of the broker's
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.done) })
	c.p.mu.Lock()
	delete(c.p.all, c)
	c.p.mu.Unlock()
	return c.Conn.Close()
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.deadline(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) SetDeadline(t time.Time) error {
	c.deadline(t)
	return c.Conn.SetDeadline(t)
}

func (c *conn) deadline(t time.Time) {
	if t.IsZero() {
		c.rd.Store(0)
		return
	}
	c.rd.Store(t.UnixNano())
}

// sleep ends early when the connection closes or the read deadline passes.
func (c *conn) sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	late := error(nil)
	if t := c.rd.Load(); t != 0 {
		if left := time.Until(time.Unix(0, t)); left < d {
			d, late = left, os.ErrDeadlineExceeded
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return late
	case <-c.done:
		return net.ErrClosed
	}
}

// Write takes requests apart.
func (c *conn) Write(b []byte) (int, error) {
	c.out = append(c.out, b...)
	for len(c.out) >= 4 {
		n := 4 + int(binary.BigEndian.Uint32(c.out))
		if len(c.out) < n {
			break
		}
		frame := c.out[:n:n]
		c.out = c.out[n:]
		if err := c.request(frame); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// request does to one request what the hook says.
func (c *conn) request(frame []byte) error {
	req, corr, err := parse(frame[4:])
	if err != nil {
		c.Close()
		return err
	}
	if req == nil { // nothing that we know of
		return c.forward(frame, pending{})
	}
	act := c.p.ask(req)
	if err := c.sleep(act.Delay); err != nil {
		return err
	}
	switch {
	case act.Late > 0:
		c.p.sendLate(c.Conn.RemoteAddr(), frame, act.Late)
		c.Close()
		return errLost
	case act.LoseRequest:
		c.Close()
		return errLost
	case act.Answer != nil:
		answer := encode(act.Answer(req), req, corr)
		if act.Act {
			return c.forward(frame, pending{act, answer})
		}
		c.push(pending{act, answer})
		return nil
	}
	return c.forward(frame, pending{act: act})
}

func (c *conn) forward(frame []byte, w pending) error {
	c.push(w)
	_, err := c.Conn.Write(frame)
	return err
}

func (c *conn) push(w pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wait = append(c.wait, w)
}

// Read gives the answer of the oldest request that has none.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.in) == 0 {
		frame, err := c.answer()
		if err != nil {
			return 0, err
		}
		c.in = frame
	}
	n := copy(b, c.in)
	c.in = c.in[n:]
	return n, nil
}

func (c *conn) answer() (frame []byte, err error) {
	c.mu.Lock()
	var w pending
	if len(c.wait) > 0 {
		w, c.wait = c.wait[0], c.wait[1:]
	}
	c.mu.Unlock()
	if w.answer == nil || w.act.Act {
		if frame, err = readFrame(c.Conn); err != nil {
			return nil, err
		}
	}
	if w.act.LoseAnswer {
		c.Close()
		return nil, errLost
	}
	if err := c.sleep(w.act.DelayAnswer); err != nil {
		return nil, err
	}
	if w.answer != nil {
		return w.answer, nil
	}
	return frame, nil
}
