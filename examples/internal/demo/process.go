package demo

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A process is one life of a process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	last counters // reported
}

// start starts the program at place i, on the state of its life before.
func (r *Run) start(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{done: make(chan struct{})}
	//nolint:noctx // it ends by stopAll or kill
	p.cmd = exec.Command(self, "-brokers", strings.Join(r.brokers, ","), "-app", r.app, "-workers", "2", "-stats",
		"-state", filepath.Join(r.dir, fmt.Sprint(i)))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go p.watch(out)
	r.procs[i] = p
	r.lives = append(r.lives, p)
	return nil
}

// watch reads the process's reports until it ends.
func (p *process) watch(out io.Reader) {
	defer close(p.done)
	for s := bufio.NewScanner(out); s.Scan(); {
		if c, ok := parse(s.Text()); ok {
			p.mu.Lock()
			p.last = c
			p.mu.Unlock()
		}
	}
	_ = p.cmd.Wait() // the exit status is in ProcessState
}

// kill is kill -9; the process comes back at once.
func (r *Run) kill(i int) error {
	if err := r.procs[i].cmd.Process.Kill(); err != nil {
		return fmt.Errorf("killing process %d: %w", i, err)
	}
	<-r.procs[i].done
	r.killed++
	return r.start(i)
}

// ended reports a process that ended by itself, which none should.
func (r *Run) ended() error {
	for i, p := range r.procs {
		select {
		case <-p.done:
			return fmt.Errorf("process %d ended by itself: %v", i, p.cmd.ProcessState)
		default:
		}
	}
	return nil
}

// stopAll stops the processes as a user would, so that they commit what they
// have in hand.
func (r *Run) stopAll() {
	for _, p := range r.procs {
		if p != nil {
			_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
		}
	}
	for i, p := range r.procs {
		if p == nil {
			continue
		}
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		r.procs[i] = nil
	}
}
