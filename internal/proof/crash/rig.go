package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 6

// A rig is one run.
type rig struct {
	config
	dir    string
	rand   *rand.Rand
	cl     *kgo.Client
	admin  *kadm.Client
	log    io.Writer
	procs  []*proc
	sent   atomic.Int64
	hits   map[string]int
	counts struct{ kills, atStop, freezes, fences, terms, exits int }
}

// A proc is a place for a process, with its state directory.
type proc struct {
	id   int
	cmd  *exec.Cmd
	done chan struct{}
	stop string // where this life is to end
	up   time.Time
	away time.Time // down until then
	cont time.Time // frozen until then
}

func runRig(ctx context.Context, c config) error {
	dir, err := os.MkdirTemp("", "semel-crash-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is in the directory for temporary files
	r := &rig{config: c, dir: dir, rand: rand.New(rand.NewPCG(uint64(c.seed), 1)), hits: map[string]int{}, log: io.Discard}
	if r.app == "" {
		r.app = fmt.Sprintf("crash-%d-%d", os.Getpid(), time.Now().Unix())
	}
	if c.keep != "" {
		f, err := os.Create(c.keep)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // each line was written as it came
		r.log = f
	}
	r.cl, err = kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer r.cl.Close()
	r.admin = kadm.NewClient(r.cl)
	if resp, err := r.admin.CreateTopics(ctx, partitions, -1, nil, r.app+"-in", r.app+"-each", r.app+"-sums"); err != nil {
		return err
	} else if err := resp.Error(); err != nil {
		return err
	}
	defer r.killAll()
	began := time.Now()
	fmt.Printf("app %s, seed %d, %d kills in %d processes\n", r.app, c.seed, c.kills, c.procs)
	if err := r.torture(ctx); err != nil {
		return err
	}
	fmt.Printf("%v: %d kill -9 (%d of them at named steps), %d SIGSTOP, %d SIGTERM, %d fenced alive, %d own exits; %d records sent\n",
		time.Since(began).Round(time.Second), r.counts.kills, r.counts.atStop, r.counts.freezes, r.counts.terms, r.counts.fences, r.counts.exits, r.sent.Load())
	fmt.Printf("deaths at named steps: %v\n", r.hits)
	return r.judge(ctx)
}

// torture runs the application and its enemies until enough kills were
// survived, and then lets it finish.
func (r *rig) torture(ctx context.Context) error {
	for i := range r.config.procs {
		p := &proc{id: i}
		r.procs = append(r.procs, p)
		if err := r.start(p, ""); err != nil {
			return err
		}
	}
	feed, stopFeed := context.WithCancel(ctx)
	defer stopFeed()
	fed := make(chan error, 1)
	go func() { fed <- r.feed(feed) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	next := time.Now().Add(2 * time.Second)
	for r.counts.kills < r.kills {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := r.tend(); err != nil {
			return err
		}
		if time.Now().After(next) {
			if err := r.strike(); err != nil {
				return err
			}
			next = time.Now().Add(time.Duration(200+r.rand.IntN(1200)) * time.Millisecond)
		}
	}
	stopFeed()
	if err := <-fed; err != nil {
		return fmt.Errorf("sending records: %w", err)
	}
	return r.finish(ctx)
}

// tend takes up what ended, and lets frozen processes go on.
func (r *rig) tend() error {
	for _, p := range r.procs {
		if p.cmd == nil {
			if time.Now().After(p.away) {
				if err := r.start(p, r.nextStop()); err != nil {
					return err
				}
			}
			continue
		}
		if !p.cont.IsZero() && time.Now().After(p.cont) {
			p.cmd.Process.Signal(syscall.SIGCONT)
			p.cont = time.Time{}
		}
		select {
		case <-p.done:
			r.ended(p)
		default:
		}
	}
	return nil
}

// ended looks at how a process ended: by its own hand at a named step, or for
// another reason, which is an exit that the runtime should not have made.
func (r *rig) ended(p *proc) {
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
		r.counts.kills++
		r.counts.atStop++
		name, _, _ := strings.Cut(p.stop, ":")
		r.hits[name]++
	} else {
		r.counts.exits++
		fmt.Printf("process %d ended by itself: %v\n", p.id, p.cmd.ProcessState)
	}
	p.cmd, p.cont = nil, time.Time{}
	p.away = time.Now().Add(r.downtime())
}

// downtime is mostly nothing, and sometimes longer than the session, so that
// the tasks move.
func (r *rig) downtime() time.Duration {
	if r.rand.IntN(5) == 0 {
		return r.session + time.Duration(r.rand.IntN(2000))*time.Millisecond
	}
	return time.Duration(r.rand.IntN(300)) * time.Millisecond
}

// nextStop is where the next life ends: at each named step in turn, or
// nowhere.
func (r *rig) nextStop() string {
	if r.rand.IntN(3) == 0 {
		return ""
	}
	if r.rand.IntN(4) == 0 { // between the parts of a commit: its outcome is not known then
		return fmt.Sprintf("%s%s:%d", fenceAt, []string{"C2", "C4"}[r.rand.IntN(2)], 1+r.rand.IntN(20))
	}
	name := stops[(r.counts.kills+r.rand.IntN(2))%len(stops)]
	n := 1
	if strings.HasPrefix(name, "C") {
		n += r.rand.IntN(30)
	}
	return fmt.Sprintf("%s:%d", name, n)
}

// strike does something to a process: kill, freeze or a polite end.
func (r *rig) strike() error {
	p := r.procs[r.rand.IntN(len(r.procs))]
	if p.cmd == nil || !p.cont.IsZero() {
		return nil
	}
	switch n := r.rand.IntN(10); {
	case n < 5:
		p.cmd.Process.Kill()
		<-p.done
		p.cmd = nil
		p.away = time.Now().Add(r.downtime())
		r.counts.kills++
	case n < 7:
		return r.fence(p)
	case n < 8:
		p.cmd.Process.Signal(syscall.SIGSTOP)
		p.cont = time.Now().Add(time.Duration(500+r.rand.IntN(9000)) * time.Millisecond)
		r.counts.freezes++
	default:
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(90 * time.Second):
			return fmt.Errorf("process %d does not end after SIGTERM", p.id)
		}
		if ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
			r.ended(p)
			return nil
		}
		if !p.cmd.ProcessState.Success() {
			r.counts.exits++
			fmt.Printf("process %d ended badly after SIGTERM: %v\n", p.id, p.cmd.ProcessState)
		}
		p.cmd = nil
		p.away = time.Now().Add(r.downtime())
		r.counts.terms++
	}
	return nil
}

// fence takes the transactional ids of a living process away from it, as the
// owner of a task does who thinks that it is dead: it must start over from what
// is committed.
func (r *rig) fence(p *proc) error {
	r.counts.fences++
	return fenceIDs(r.cl, r.app, filepath.Join(r.dir, fmt.Sprint(p.id)))
}

func (r *rig) start(p *proc, stop string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p.cmd = exec.Command(self, "-child", "-brokers", strings.Join(r.brokers, ","), "-app", r.app, "-session", r.session.String(), //nolint:noctx // killAll ends it
		"-state", filepath.Join(r.dir, fmt.Sprint(p.id)), "-stop", stop)
	p.cmd.Env = append(os.Environ(), "SEMEL_MUTANT="+r.mutant)
	p.cmd.Stderr = r.log
	p.done, p.stop, p.up, p.cont = make(chan struct{}), stop, time.Now(), time.Time{}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // how it ended is in its ProcessState
		close(done)
	}(p.cmd, p.done)
	return nil
}

func (r *rig) killAll() {
	for _, p := range r.procs {
		if p.cmd != nil {
			p.cmd.Process.Kill()
			<-p.done
		}
	}
}

// feed sends records with unique ids at a steady rate until ctx ends.
func (r *rig) feed(ctx context.Context) error {
	var failed atomic.Pointer[error]
	began := time.Now()
	for ctx.Err() == nil {
		want := int64(time.Since(began).Seconds() * float64(r.rate))
		for r.sent.Load() < want {
			k := rand.IntN(r.keys)
			rec := &kgo.Record{
				Topic: r.app + "-in", Partition: int32(k % partitions),
				Key: fmt.Appendf(nil, "key-%05d", k), Value: fmt.Appendf(nil, "%d", r.sent.Load()),
			}
			r.cl.Produce(context.Background(), rec, func(_ *kgo.Record, err error) {
				if err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			})
			r.sent.Add(1)
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := r.cl.Flush(context.Background()); err != nil {
		return err
	}
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
