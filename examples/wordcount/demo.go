package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

type demoConfig struct {
	brokers, in string
	kills       int
}

const (
	demoPartitions = 4
	demoProcesses  = 2
)

// A demo is one run: a broker, a text, processes that count and are killed.
type demo struct {
	cfg     demoConfig
	app     string
	brokers []string
	dir     string
	admin   *kadm.Client
	corpus  *corpus
	procs   [demoProcesses]*process
	lives   []*process // all that ever ran
	killed  int
}

// runDemo counts a text in processes that die on the way and compares the
// result with a plain recount.
func runDemo(ctx context.Context, cfg demoConfig) error {
	began := time.Now()
	dir, err := os.MkdirTemp("", "semel-wordcount-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demo{cfg: cfg, dir: dir, app: fmt.Sprintf("wordcount-demo-%d", os.Getpid())}
	closeBroker, err := d.openBroker()
	if err != nil {
		return err
	}
	defer closeBroker()
	if err := d.makeTopics(ctx); err != nil {
		return err
	}
	// A client of its own, which never knew the topics that were deleted.
	cl, err := kgo.NewClient(kgo.SeedBrokers(d.brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(1<<18))
	if err != nil {
		return err
	}
	defer cl.Close()
	d.admin = kadm.NewClient(cl)
	fmt.Println("loading", orStandard(cfg.in), "...")
	if d.corpus, err = load(ctx, cl, cfg.in, demoPartitions); err != nil {
		return err
	}
	fmt.Printf("loaded %d lines, %d words, %d of them different, in %.1f s\n",
		d.corpus.lines, d.corpus.words, len(d.corpus.count), time.Since(began).Seconds())
	if n := d.corpus.skipped; n > 0 {
		fmt.Printf("left out %d lines that are too long for a record\n", n)
	}
	counting := time.Now()
	defer d.stopAll()
	if err := d.count(ctx); err != nil {
		return err
	}
	took := time.Since(counting)
	d.stopAll()
	return d.report(ctx, took, time.Since(began))
}

func orStandard(in string) string {
	if in == "" {
		return "the source of Go's standard library"
	}
	return in
}

// openBroker starts the embedded broker, or takes the given one.
func (d *demo) openBroker() (func(), error) {
	if d.cfg.brokers != "" {
		d.brokers = strings.Split(d.cfg.brokers, ",")
		fmt.Println("broker:", d.cfg.brokers)
		return func() {}, nil
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BrokerConfigs(map[string]string{"log.segment.bytes": "1048576"}))
	if err != nil {
		return nil, fmt.Errorf("starting the embedded broker: %w", err)
	}
	d.brokers = c.ListenAddrs()
	fmt.Println("broker: embedded, on", d.brokers[0])
	return c.Close, nil
}

// makeTopics makes the topics anew, so that a second run begins at zero too.
func (d *demo) makeTopics(ctx context.Context) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(d.brokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	if _, err := admin.DeleteTopics(ctx, Lines.Name, Counts.Name); err != nil {
		return err
	}
	for try := 0; ; try++ {
		resp, err := admin.CreateTopics(ctx, demoPartitions, -1, nil, Lines.Name, Counts.Name)
		if err == nil {
			err = resp.Error()
		}
		if err == nil {
			return nil
		}
		if try == 50 || ctx.Err() != nil {
			return fmt.Errorf("making topics: %w", err)
		}
		select { // the old ones are being deleted
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// count runs the processes until everything is counted, killing one each time
// the next part of the text is done.
func (d *demo) count(ctx context.Context) error {
	for i := range d.procs {
		if err := d.start(i); err != nil {
			return err
		}
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			fmt.Println()
			return ctx.Err()
		case <-tick.C:
		}
		done, all, err := d.progress(ctx)
		if err != nil {
			continue // the group or a topic is not there yet
		}
		d.bar(done, all)
		if all > 0 && done == all {
			fmt.Println()
			return nil
		}
		if err := d.revive(); err != nil {
			return err
		}
		if d.killed < d.cfg.kills && done*int64(d.cfg.kills+1) > all*int64(d.killed+1) {
			if err := d.kill(d.killed % demoProcesses); err != nil {
				return err
			}
		}
	}
}

// progress is how many lines are counted, as the committed offsets say. A line
// whose words are still on their way is not.
func (d *demo) progress(ctx context.Context) (done, all int64, err error) {
	repartition := d.app + "-counts-repartition"
	ends, err := d.admin.ListEndOffsets(ctx, Lines.Name, repartition)
	if err != nil {
		return 0, 0, err
	}
	committed, err := d.admin.FetchOffsets(ctx, d.app)
	if err != nil {
		return 0, 0, err
	}
	var lag int64
	ends.Each(func(o kadm.ListedOffset) {
		c, ok := committed.Lookup(o.Topic, o.Partition)
		if o.Topic == Lines.Name {
			all += o.Offset
			if ok {
				done += c.At
			}
		} else if ok {
			lag += o.Offset - c.At
		} else {
			lag += o.Offset
		}
	})
	if lag > 0 && done == all {
		done = all - 1
	}
	return done, all, nil
}

func (d *demo) bar(done, all int64) {
	const width = 40
	full := int(done * width / max(all, 1))
	fmt.Printf("\r[%s%s] %3d%%  %d killed ", strings.Repeat("#", full), strings.Repeat(".", width-full), done*100/max(all, 1), d.killed)
}

// A process is one life of a counting process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	// What it last reported.
	commits, aborts, records, restores int
}

func (d *demo) start(i int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{done: make(chan struct{})}
	p.cmd = exec.Command(self, "-brokers", strings.Join(d.brokers, ","), "-app", d.app, "-workers", "2", "-stats",
		"-state", filepath.Join(d.dir, fmt.Sprint(i)))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go p.watch(out)
	d.procs[i] = p
	d.lives = append(d.lives, p)
	return nil
}

// watch reads the process's reports until it ends.
func (p *process) watch(out io.Reader) {
	defer close(p.done)
	for s := bufio.NewScanner(out); s.Scan(); {
		p.mu.Lock()
		fmt.Sscan(s.Text(), &p.commits, &p.aborts, &p.records, &p.restores)
		p.mu.Unlock()
	}
	p.cmd.Wait()
}

// kill is kill -9; the process comes back at once.
func (d *demo) kill(i int) error {
	d.procs[i].cmd.Process.Kill()
	<-d.procs[i].done
	d.killed++
	return d.start(i)
}

// revive reports a process that ended by itself, which none should.
func (d *demo) revive() error {
	for i, p := range d.procs {
		select {
		case <-p.done:
			return fmt.Errorf("process %d ended by itself: %v", i, p.cmd.ProcessState)
		default:
		}
	}
	return nil
}

func (d *demo) stopAll() {
	for _, p := range d.procs {
		if p != nil {
			p.cmd.Process.Signal(os.Interrupt)
		}
	}
	for _, p := range d.procs {
		if p == nil {
			continue
		}
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			p.cmd.Process.Kill()
			<-p.done
		}
	}
}
