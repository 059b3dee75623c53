package model

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/semelstream/semel/internal/seam"
)

// A run is one life of the counter application, with two processes of two
// workers, and what the checker has against it.
type run struct {
	seed   uint64
	faults Faults
	inputs int
	keys   int
	during time.Duration // of inputs and faults
	killAt int           // process a dies at this turn
	mut    mutants
	trace  bool

	w     *World
	procs []*Process
	bad   []string
}

const parts = 4

// stormy has everything that can go wrong.
func stormy(seed uint64) *run {
	return &run{seed: seed, inputs: 200, keys: 24, during: 20 * time.Second, faults: Faults{Crash: 10, Freeze: 3, Net: 15, Late: 5, GiveUp: 30}}
}

// calm has no faults.
func calm(seed uint64) *run {
	return &run{seed: seed, inputs: 60, keys: 24, during: 3 * time.Second}
}

func (r *run) do() *run {
	r.w = New(Config{Seed: r.seed, Faults: r.faults, Restart: true, Trace: r.trace})
	defer r.w.Stop()
	for _, t := range []string{"src", "out", "chg"} {
		r.w.CreateTopic(t, parts, nil)
	}
	for _, name := range []string{"a", "b"} {
		r.procs = append(r.procs, r.w.Start(name, func(env seam.Env, disk *Disk) error {
			if r.mut.unstableOffsets {
				env.Broker = unstable{env.Broker, r.w}
			}
			c := &counter{Env: env, disk: disk, name: name, parts: parts, mut: r.mut}
			return c.run(context.Background(), 2)
		}))
	}
	r.w.KillAtTurn(r.procs[0], r.killAt)
	for i := range r.inputs {
		k := r.w.Rand().IntN(r.keys)
		tp := seam.TP{Topic: "src", Partition: int32(k % parts)}
		r.w.Produce(tp, fmt.Appendf(nil, "k%03d", k), fmt.Appendf(nil, "%06d", i), time.Time{})
		r.w.Advance(time.Duration(r.w.Rand().Int64N(2 * int64(r.during) / int64(r.inputs))))
	}
	r.w.Quiet()
	if !r.w.RunUntil(r.done, 2*time.Minute) {
		r.complain("not done two minutes after the last fault")
	}
	r.check()
	return r
}

// unstable is a broker whose committed offsets have no regard to open
// transactions.
type unstable struct {
	seam.Broker
	w *World
}

func (u unstable) Committed(ctx context.Context, group, _ string, tps []seam.TP) (seam.Offsets, error) {
	u.w.pause(ctx, time.Millisecond, true, "unstable OffsetFetch")
	out := seam.Offsets{}
	for _, tp := range tps {
		if o, ok := u.w.broker.group(group).offs[tp]; ok {
			out[tp] = o
		}
	}
	return out, nil
}

func (r *run) complain(format string, args ...any) {
	r.bad = append(r.bad, fmt.Sprintf(format, args...))
}

func (r *run) done() bool {
	if !r.w.Settled() {
		return false
	}
	for p := range int32(parts) {
		src := seam.TP{Topic: "src", Partition: p}
		if o, _ := r.w.Committed("app", src); o.At < r.w.End(src) {
			return false
		}
	}
	return true
}

// check: every input has exactly its effects, in order; the changelog folds
// to the counts; and every disk is the fold of its changelog up to its own
// position, whoever owns the task now.
func (r *run) check() {
	for p := range int32(parts) {
		src, out, chg := r.read("src", p), r.read("out", p), r.read("chg", p)
		want := map[string]uint64{}
		for i, in := range src {
			want[in.key]++
			if i >= len(out) {
				break
			}
			count := binary.BigEndian.Uint64([]byte(out[i].value))
			if out[i].key != in.key || count != want[in.key] || out[i].value[8:] != in.value {
				r.complain("out/%d #%d: %s=%d for input %s, want %s=%d for %s", p, i, out[i].key, count, out[i].value[8:], in.key, want[in.key], in.value)
				break
			}
		}
		if len(out) != len(src) {
			r.complain("out/%d: %d records, want %d", p, len(out), len(src))
		}
		counts := map[string]uint64{}
		for k, v := range fold(chg, 1<<62) {
			counts[k] = binary.BigEndian.Uint64([]byte(v))
		}
		if !maps.Equal(counts, want) {
			r.complain("chg/%d does not fold to the counts", p)
		}
		for _, proc := range r.procs {
			r.checkDisk(proc, p, chg)
		}
	}
}

func (r *run) checkDisk(proc *Process, p int32, chg []row) {
	e := proc.Disk().Read(fmt.Sprint(p))
	if e == nil {
		return
	}
	got := map[string]string{}
	it := e.Scan([]byte("k"), []byte("l"), false)
	for it.Next() {
		got[string(it.Key()[1:])] = string(it.Value())
	}
	if at := storedPosition(e); !maps.Equal(got, fold(chg, at)) {
		r.complain("disk of %s, task %d: not the changelog up to %d", proc.Name(), p, at)
	}
}

type row struct {
	key, value string
	offset     int64
}

func (r *run) read(topic string, p int32) (rows []row) {
	for _, rec := range r.w.Read(seam.TP{Topic: topic, Partition: p}, 0) {
		rows = append(rows, row{string(rec.Key), string(rec.Value), rec.Offset})
	}
	return rows
}

func fold(rows []row, before int64) map[string]string {
	m := map[string]string{}
	for _, x := range rows {
		if x.offset < before {
			m[x.key] = x.value
		}
	}
	return m
}

func (r *run) String() string {
	return fmt.Sprintf("seed %d: %s\n%s", r.seed, strings.Join(r.bad, "\n  "), strings.Join(r.w.Trace(), "\n"))
}
