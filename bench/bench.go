package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A bench is one run of the driver.
type bench struct {
	settings
	c    *cluster
	dir  string // of state directories
	run  string // begins all names of this run
	last int    // number of the last name
	from *machine

	warmed bool // the broker is, see warmUpBroker
}

// settings are the flags.
type settings struct {
	records, lines int64
	peerRecords    int64
	kafkaStreams   string // folder of jars
	valueSize      int
	pairs, workers int
	commit         time.Duration
	small          bool   // -quick
	only           string // comma list of workloads; empty is all
	variants       string // comma list of variants, like only
	warm           bool
	patience       time.Duration // of one run

	rate    int // of latency
	seconds int
	warmUp  time.Duration // before records are measured

	stateKeys   int64 // of recovery and restore
	stateValue  int
	kills       int
	settle, gap time.Duration

	out                    string // directory of results
	cpuProfile, memProfile string // prefixes
}

// name makes a name that nothing had before: topics, groups, transactional ids
// and state directories are new in each run.
func (b *bench) name(what string) string {
	b.last++
	return fmt.Sprintf("%s-%02d-%s", b.run, b.last, what)
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func (b *bench) wants(workload string) bool { return lists(b.only, workload) }

// lists says that a comma list has a name, or is empty.
func lists(list, name string) bool {
	if list == "" {
		return true
	}
	for n := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(n) == name {
			return true
		}
	}
	return false
}

// forget deletes what an application left on the brokers and on the disk.
func (b *bench) forget(ctx context.Context, app string, outputs ...string) error {
	if err := os.RemoveAll(filepath.Join(b.dir, app)); err != nil {
		return err
	}
	return b.c.forget(ctx, app, outputs...)
}

// write prints a report and keeps it if results are kept. A report of the same
// day and name is not replaced.
func (b *bench) write(what, report string) error {
	text := b.from.header(b, what) + "\n" + report
	fmt.Print(text)
	if b.out == "" {
		return nil
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	for n := 1; ; n++ {
		name := time.Now().Format("2006-01-02") + "-" + what
		if n > 1 {
			name += fmt.Sprintf("-%d", n)
		}
		f, err := os.OpenFile(filepath.Join(b.out, name+".txt"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		b.say("writing %s", f.Name())
		_, err = f.WriteString(text)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return err
	}
}
