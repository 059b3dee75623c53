package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

func recoveryReport(all []recovered, r *stateRun, sent int64) string {
	var t strings.Builder
	fmt.Fprintf(&t, "One store of %d rows, %.2f GB of keys and values, in %d tasks; %d records/s trickle in. kill -9 and restart at once,\n"+
		"on the same host. Silence: the longest time between two outputs that a read_committed consumer saw. First output:\n"+
		"from the kill until it saw the output of a record sent after the kill. %d records were sent; every one came out once.\n\n",
		r.b.stateKeys, float64(r.bytes)/1e9, partitions, r.b.trickle(), sent)
	tab := &table{left: 1}
	tab.add("kill", "silence ms", "first output ms", "new process ms", "all tasks run ms", "records replayed")
	var silence, first []float64
	for i, k := range all {
		silence, first = append(silence, ms(k.silence)), append(first, ms(k.first))
		tab.add(fmt.Sprint(i+1), fmt.Sprintf("%.0f", ms(k.silence)), fmt.Sprintf("%.0f", ms(k.first)),
			fmt.Sprintf("%.0f", ms(k.started)), fmt.Sprintf("%.0f", ms(k.running)), fmt.Sprint(k.replayed))
	}
	tab.add("median", fmt.Sprintf("%.0f", spreadOf(silence).Median), fmt.Sprintf("%.0f", spreadOf(first).Median))
	t.WriteString(tab.String() + "\n")
	t.WriteString(r.b.goals([]goal{
		{"kill -9 to the first committed output, 1 GB", 1.5, false, spreadOf(first).Median / 1e3, "s"},
	}))
	return t.String()
}

func restoreReport(all []restored, r *stateRun) string {
	var t strings.Builder
	fmt.Fprintf(&t, "One store of %d rows, %.2f GB of keys and values, in %d tasks. The process ended in order, its state directory was\n"+
		"deleted, it started again. Time from the first task's beginning to the last one's end; MB are 10^6 bytes of keys and\n"+
		"values of changelog records. After each restore the store's rows were counted.\n\n",
		r.b.stateKeys, float64(r.bytes)/1e9, partitions)
	tab := &table{left: 1}
	tab.add("restore", "records", "MB", "s", "MB/s", "records/s", "start to running s", "CPU s", "peak RSS MB")
	var rates []float64
	for i, k := range all {
		s := k.took.Seconds()
		rates = append(rates, float64(k.bytes)/1e6/s)
		tab.add(fmt.Sprint(i+1), fmt.Sprint(k.records), fmt.Sprintf("%.0f", float64(k.bytes)/1e6), fmt.Sprintf("%.2f", s),
			fmt.Sprintf("%.0f", float64(k.bytes)/1e6/s), fmt.Sprintf("%.0f", float64(k.records)/s),
			fmt.Sprintf("%.2f", k.start.Seconds()), fmt.Sprintf("%.1f", k.cpu), fmt.Sprintf("%.0f", float64(k.peak)/1e6))
	}
	t.WriteString(tab.String() + "\n")
	t.WriteString(r.b.goals([]goal{
		{"restore into an empty store", 100, true, spreadOf(rates).Median, "MB/s"},
	}))
	return t.String()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// used is the CPU time and the most memory of a child so far.
func (p *process) used() (cpu float64, peak int64) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	// The name, in parentheses, may have spaces; utime and stime are the 12th
	// and 13th after it.
	_, after, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(after)
	if len(f) < 13 {
		return 0, 0
	}
	if cpu, err = seconds(f[11:13]); err != nil {
		return 0, 0
	}
	return cpu, residentPeak(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
}
