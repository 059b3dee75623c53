package main

import (
	"errors"
	"os"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/semelstream/semel/stream"
)

// A meter measures its own process between two commits: the one that brings
// the records to a quarter of all, when caches and buffers are warm, and the
// one that completes them. Without a number of records it measures from the
// moment the app runs until the end.
type meter struct {
	s     spec
	out   *events
	steps *steps // nil if nobody takes them

	mu          sync.Mutex
	done        int64
	took        []time.Duration // transactions since the mark, or all before it is set
	aborts      int
	first, mark *snapshot
	finished    chan struct{} // closed when all records are committed
	complete    bool
	profile     *os.File
}

func newMeter(s spec, out *events) *meter {
	return &meter{s: s, out: out, finished: make(chan struct{})}
}

// A snapshot is what the process has used so far.
type snapshot struct {
	at             time.Time
	done           int64
	cpu, gc        float64
	mallocs, bytes uint64
	machine        machineTime
}

func (m *meter) snap() *snapshot {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		m.out.warn("getrusage: %v", err)
	}
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	return &snapshot{
		at: time.Now(), done: m.done, gc: gcSeconds(), mallocs: ms.Mallocs, bytes: ms.TotalAlloc,
		cpu:     float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9,
		machine: lookAtMachine(),
	}
}

// gcSeconds is the CPU time of the collector but for its idle workers, who
// take what nobody wants. It moves at the end of each cycle.
func gcSeconds() float64 {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64() - s[1].Value.Float64()
}

// begin is called when records begin to flow.
func (m *meter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == nil {
		m.first = m.snap()
		if m.s.Records == 0 {
			m.setMark(m.first)
		}
	}
}

// commit is called when so many more records are known to be committed; took
// is 0 where there are no transactions.
func (m *meter) commit(records int64, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += records
	switch {
	case m.complete:
		if records > 0 {
			m.out.warn("%d records were committed after the last one", records)
		}
		return
	case took > 0:
		m.took = append(m.took, took)
	}
	if m.mark == nil && m.s.Records > 0 && m.done >= m.s.Records/4 && m.done < m.s.Records {
		m.setMark(m.snap())
	}
	if m.s.Records > 0 && m.done >= m.s.Records {
		m.complete = true
		m.report()
		close(m.finished)
	}
}

func (m *meter) setMark(s *snapshot) {
	m.mark, m.took = s, nil
	if m.steps != nil {
		m.steps.forget()
	}
	if m.s.CPUProfile == "" {
		return
	}
	f, err := os.Create(m.s.CPUProfile)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		m.out.warn("profiling: %v", err)
		return
	}
	m.profile = f
}

// end reports what was measured, if that has not happened yet.
func (m *meter) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.complete {
		m.complete = true
		m.report()
	}
}

func (m *meter) report() {
	now := m.snap()
	if m.profile != nil {
		pprof.StopCPUProfile()
		if err := m.profile.Close(); err != nil {
			m.out.warn("profiling: %v", err)
		}
	}
	if err := m.heapProfile(); err != nil {
		m.out.warn("profiling: %v", err)
	}
	r := &result{Aborts: m.aborts, Commits: len(m.took), PeakRSS: residentPeak("/proc/self/status")}
	from := m.mark
	if from == nil {
		from, r.Whole = m.first, true
	}
	if from == nil {
		m.out.warn("ended before it began")
		return
	}
	r.Records, r.Seconds = now.done-from.done, now.at.Sub(from.at).Seconds()
	r.CPU, r.GC = now.cpu-from.cpu, now.gc-from.gc
	busy, idle := now.machine.since(from.machine)
	r.Others, r.Idle = max(busy-r.CPU, 0), idle // hundredths against microseconds: may be a little less
	r.Mallocs, r.Bytes = now.mallocs-from.mallocs, now.bytes-from.bytes
	r.Unsteady = m.s.Records > 0 && m.done != m.s.Records
	r.Txn = quantilesOf(m.took)
	if m.steps != nil {
		m.steps.report(r)
	}
	m.out.send(event{Kind: eventResult, Result: r})
}

func (m *meter) heapProfile() error {
	if m.s.MemProfile == "" {
		return nil
	}
	f, err := os.Create(m.s.MemProfile)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}

// residentPeak is the most memory that a program had resident. rusage would
// count what its parent had at the fork.
func residentPeak(status string) int64 {
	f := strings.Fields(field(status, "VmHWM"))
	if len(f) == 0 {
		return 0
	}
	kb, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}

// OnState implements [stream.HookState].
func (m *meter) OnState(_, to stream.State) {
	if to == stream.Running {
		m.begin()
	}
	m.out.send(event{Kind: eventState, Text: string(to)})
}

// OnTransaction implements [stream.HookTransaction].
func (m *meter) OnTransaction(_, records int, took time.Duration, err error) {
	if err != nil {
		m.mu.Lock()
		m.aborts++
		m.mu.Unlock()
		m.out.warn("a transaction of %d records aborted: %v", records, err)
		return
	}
	m.commit(int64(records), took)
}

// OnRestore implements [stream.HookRestore].
func (m *meter) OnRestore(r stream.Restore) {
	m.out.send(event{Kind: eventRestore, Restore: &restore{
		Task: r.Task, Store: r.Store, Reason: r.Reason, Records: r.Records, Bytes: r.Bytes, Took: r.Took, Done: r.Done,
	}})
}
