package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A process is a child as its driver sees it.
type process struct {
	s      spec
	cmd    *exec.Cmd
	in     io.WriteCloser
	done   chan struct{}
	news   chan struct{} // a token when something was added
	began  time.Time
	mu     sync.Mutex
	events []event
	err    error // how it ended
}

// start runs this program again, as the child that s says.
func start(s spec) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{s: s, done: make(chan struct{}), news: make(chan struct{}, 1), began: time.Now()}
	p.cmd = exec.Command(self, "-child", s.argument()) //nolint:noctx // it ends by stop, by kill, or with us
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting a child: %w", err)
	}
	go p.watch(out)
	return p, nil
}

func (p *process) watch(out io.Reader) {
	defer close(p.done)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = event{Kind: eventWarning, At: time.Now(), Text: "not an event: " + err.Error()}
		}
		if e.Kind == eventWarning {
			fmt.Fprintf(os.Stderr, "bench: %s %s: %s\n", p.s.Kind, p.s.App, e.Text)
		}
		p.mu.Lock()
		p.events = append(p.events, e)
		p.mu.Unlock()
		p.tell()
	}
	err := p.cmd.Wait()
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
}

func (p *process) tell() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// all are the events so far.
func (p *process) all() []event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events[:len(p.events):len(p.events)]
}

// find is the n-th event, from 0, that satisfies f.
func (p *process) find(n int, f func(event) bool) (event, bool) {
	for _, e := range p.all() {
		if f(e) {
			if n == 0 {
				return e, true
			}
			n--
		}
	}
	return event{}, false
}

// await waits for the n-th event that satisfies f. One goroutine may call it at
// a time.
func (p *process) await(ctx context.Context, what string, n int, f func(event) bool) (event, error) {
	for {
		if e, ok := p.find(n, f); ok {
			return e, nil
		}
		select {
		case <-p.news:
		case <-p.done:
			if e, ok := p.find(n, f); ok {
				return e, nil
			}
			return event{}, fmt.Errorf("the child ended before %s: %w", what, p.ended())
		case <-ctx.Done():
			return event{}, fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}

func (p *process) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		return errors.New("without an error")
	}
	return p.err
}

func isState(name string) func(event) bool {
	return func(e event) bool { return e.Kind == eventState && e.Text == name }
}

// result waits for the end and returns what the child measured.
func (p *process) result(ctx context.Context) (*result, error) {
	e, err := p.await(ctx, "its result", 0, func(e event) bool { return e.Kind == eventResult })
	if err != nil {
		p.kill()
		return nil, err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return nil, ctx.Err()
	case <-time.After(30 * time.Second):
		p.kill()
		return nil, errors.New("the child does not end")
	}
	_ = p.in.Close() // nobody reads it any more
	if err := p.cmdError(); err != nil {
		return nil, fmt.Errorf("the child failed: %w", err)
	}
	return e.Result, nil
}

func (p *process) cmdError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// stop asks the child to end in order and returns what it measured.
func (p *process) stop(ctx context.Context) (*result, error) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return nil, err
	}
	return p.result(ctx)
}

// kill is kill -9; it returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
	_ = p.in.Close() // nobody reads it any more
}

// rows asks the child for the rows of its store.
func (p *process) rows(ctx context.Context, asked int) (int64, error) {
	if _, err := fmt.Fprintln(p.in); err != nil {
		return 0, err
	}
	e, err := p.await(ctx, "its rows", asked, func(e event) bool { return e.Kind == eventRows })
	if err != nil {
		return 0, err
	}
	var n int64
	_, err = fmt.Sscan(e.Text, &n)
	return n, err
}
