package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/proof/check"
	"github.com/semelstream/semel/state"
)

// finish lets every process live until all is processed, then ends them.
func (r *rig) finish(ctx context.Context) error {
	until := time.Now().Add(r.patience)
	for {
		for _, p := range r.procs {
			if p.cmd != nil {
				p.cmd.Process.Signal(syscall.SIGCONT)
				p.cont = time.Time{}
				select {
				case <-p.done:
					r.ended(p)
				default:
				}
			}
			if p.cmd == nil {
				if err := r.start(p, ""); err != nil {
					return err
				}
			}
		}
		done, reason, err := r.drained(ctx)
		if err == nil && done {
			break
		}
		why := reason
		if err != nil {
			why = err.Error()
		}
		if time.Now().After(until) {
			for _, p := range r.procs {
				p.cmd.Process.Signal(syscall.SIGQUIT) // its goroutines go to the log
				<-p.done
				p.cmd = nil
			}
			if r.expect {
				fmt.Println("violation found: no progress:", why)
				return nil
			}
			return fmt.Errorf("no progress in %v after the last kill: %s", r.patience, why)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	for _, p := range r.procs {
		p.cmd.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range r.procs {
		<-p.done
		if !p.cmd.ProcessState.Success() {
			fmt.Printf("process %d ended badly after SIGTERM: %v\n", p.id, p.cmd.ProcessState)
		}
		p.cmd = nil
	}
	return nil
}

// drained says that the committed offsets have reached the ends.
func (r *rig) drained(ctx context.Context) (bool, string, error) {
	ends, err := r.admin.ListEndOffsets(ctx, r.app+"-in", r.app+"-sums-repartition")
	if err != nil {
		return false, "", err
	}
	committed, err := r.admin.FetchOffsets(ctx, r.app)
	if err != nil {
		return false, "", err
	}
	why := ""
	ends.Each(func(o kadm.ListedOffset) {
		c, ok := committed.Lookup(o.Topic, o.Partition)
		if o.Offset > 0 && (!ok || c.At < o.Offset) {
			why = fmt.Sprintf("%s/%d: committed %d of %d", o.Topic, o.Partition, c.At, o.Offset)
		}
	})
	return why == "", why, nil
}

// judge reads everything raw and compares.
func (r *rig) judge(ctx context.Context) error {
	logs := map[string][]*check.Log{}
	for _, t := range []string{"-in", "-each", "-sums", "-counts-changelog", "-sums-changelog", "-sums-repartition"} {
		l, err := check.Read(ctx, r.brokers, r.app+t)
		if err != nil {
			return err
		}
		logs[t] = l
	}
	counts, sums := map[string]int64{}, map[string]int64{}
	for _, l := range logs["-in"] {
		for _, rec := range l.Committed {
			counts[string(rec.Key)]++
			sums[group(string(rec.Key))]++
		}
	}
	rep := &check.Report{}
	rep.Each(logs["-in"], logs["-each"])
	rep.Counts(logs["-counts-changelog"], counts, true)
	rep.Counts(logs["-sums"], sums, false)
	rep.Counts(logs["-sums-changelog"], sums, true)
	rep.Markers(logs["-each"], logs["-sums"], logs["-counts-changelog"], logs["-sums-changelog"], logs["-sums-repartition"])
	if err := r.checkDisks(rep, logs); err != nil {
		return err
	}
	if int64(rep.Inputs) != r.sent.Load() {
		rep.Wrong = append(rep.Wrong, fmt.Sprintf("the input has %d records, %d were sent", rep.Inputs, r.sent.Load()))
	}
	fmt.Println(rep)
	switch {
	case r.expect && rep.OK():
		return fmt.Errorf("the checker found nothing, though %q is a mistake", r.mutant)
	case r.expect:
		fmt.Println("violation found, as expected")
		return nil
	case !rep.OK():
		return fmt.Errorf("not exact")
	}
	fmt.Println("exact: 0 lost, 0 doubled, 0 torn")
	return nil
}

// checkDisks asks that every state directory, also of former owners, is the
// fold of the changelog up to its own position.
func (r *rig) checkDisks(rep *check.Report, logs map[string][]*check.Log) error {
	dirs, err := filepath.Glob(filepath.Join(r.dir, "*", "*_*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		var sub, part int
		if _, err := fmt.Sscanf(filepath.Base(dir), "%d_%d", &sub, &part); err != nil {
			continue
		}
		store := []string{"counts", "sums"}[sub]
		if err := checkDisk(rep, dir, store, logs["-"+store+"-changelog"][part]); err != nil {
			return err
		}
	}
	return nil
}

func checkDisk(rep *check.Report, dir, store string, log *check.Log) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	e, err := state.OpenPebble(dir, state.PebbleOptions{})
	if err != nil {
		return fmt.Errorf("opening %s: %w", dir, err)
	}
	db, err := state.Open(e, state.Options{Stores: []state.Spec{{Name: store}}})
	if err != nil {
		_ = e.Close() // err is the reason
		return fmt.Errorf("opening %s: %w", dir, err)
	}
	defer func() { _ = db.Close() }() // it was only read
	kv, err := state.OpenKV(db, store, codec.String, codec.Int64)
	if err != nil {
		return err
	}
	want := map[string]int64{}
	pos := db.Part(store).Position()
	for _, rec := range log.Committed {
		if rec.Offset < pos {
			want[string(rec.Key)], _ = codec.Int64.Decode(rec.Value)
		}
	}
	n := 0
	for row, err := range kv.All() {
		if err != nil {
			return err
		}
		n++
		if want[row.Key] != row.Value {
			rep.Torn = append(rep.Torn, fmt.Sprintf("%s at position %d: %s is %d, the changelog says %d", dir, pos, row.Key, row.Value, want[row.Key]))
		}
	}
	if n != len(want) {
		rep.Torn = append(rep.Torn, fmt.Sprintf("%s at position %d has %d rows, the changelog says %d", dir, pos, n, len(want)))
	}
	return nil
}
