package main

import (
	"fmt"
	"strings"
)

// scale turns what a topology processed into the units of its source: lines of
// the word count, whose words are processed once more.
func (s *series) scale() float64 {
	if s.variant == eos.name || s.variant == alos.name {
		return float64(s.src.units) / float64(s.src.records)
	}
	return 1
}

func (s *series) rates() []float64 {
	return s.of(func(r *result) float64 { return r.rate() * s.scale() })
}

func (s *series) cpus() []float64 {
	return s.of(func(r *result) float64 { return r.cpu() / s.scale() })
}

func (s *series) per(f func(*result) uint64) []float64 {
	return s.of(func(r *result) float64 { return float64(f(r)) / (float64(r.Records) * s.scale()) })
}

func (s *series) median(f func(*result) float64) float64 { return spreadOf(s.of(f)).Median }

// runLine is one run as it is reported while it goes on.
func runLine(s *series, r *result, round int) string {
	whole := ""
	if r.Whole {
		whole = "  (too few transactions: measured from the first record on)"
	}
	return fmt.Sprintf("%-13s %-14s round %d  %8.0f %s/s  %6.3f us CPU, others %.3f, idle %.1f %%%s",
		s.workload, s.variant, round+1, r.rate()*s.scale(), s.src.unit, r.cpu()/s.scale(), r.others()/s.scale(), r.idle(), whole)
}

func throughputReport(all []*series, b *bench) string {
	var t strings.Builder
	fmt.Fprintf(&t, "A loaded topic of %d partitions (16-byte keys, %d-byte values; words: lines of Go's source) is drained\n"+
		"by a child process: %d rounds, alternating. Rate and costs from a quarter of the records until all are\n"+
		"committed; per record, for words per line. Median [min..max]. Every output was checked. The last transaction\n"+
		"waits for its interval, which the floor has not. CPU of others is above all the broker's, of the same time.\n"+
		touchedText+
		"workers %d, commit interval %v, no compression, linger 5ms\n\n", partitions, b.valueSize, b.pairs, b.workers, b.commit)
	t.WriteString(rateTable(all).String() + "\n")
	t.WriteString(commitTable(all).String() + "\n")
	t.WriteString(ratioTable(all).String() + "\n")
	t.WriteString(b.goals(throughputGoals(all)))
	if whole(all) {
		t.WriteString("\nSome runs had too few transactions to leave the first quarter out.\n")
	}
	return t.String()
}

func whole(all []*series) bool {
	for _, s := range all {
		for _, r := range s.results {
			if r.Whole {
				return true
			}
		}
	}
	return false
}

func rateTable(all []*series) *table {
	t := &table{left: 2}
	t.add("workload", "variant", "per second", "us CPU", "of others", "idle %", "allocations", "bytes", "GC % of CPU", "peak RSS MB")
	for _, s := range all {
		t.add(s.workload, s.variant,
			spreadOf(s.rates()).format("%.0f"),
			spreadOf(s.cpus()).format("%.3f"),
			fmt.Sprintf("%.3f", s.median((*result).others)/s.scale()),
			fmt.Sprintf("%.1f", s.median((*result).idle)),
			fmt.Sprintf("%.4f", spreadOf(s.per(func(r *result) uint64 { return r.Mallocs })).Median),
			fmt.Sprintf("%.0f", spreadOf(s.per(func(r *result) uint64 { return r.Bytes })).Median),
			fmt.Sprintf("%.1f", s.median(func(r *result) float64 { return 100 * r.GC / r.CPU })),
			fmt.Sprintf("%.0f", s.median(func(r *result) float64 { return float64(r.PeakRSS) / 1e6 })),
		)
	}
	return t
}

// commitTable has medians over the rounds of each round's quantiles.
func commitTable(all []*series) *table {
	t := &table{left: 2}
	t.add("workload", "variant", "transactions", "length ms p50", "commit ms p50", "p99", "max", "flush p50", "prepare p50", "end p50")
	for _, s := range all {
		if s.median(func(r *result) float64 { return float64(r.Commits) }) == 0 {
			continue // the floor has none
		}
		ms := func(f func(*result) float64) string {
			if s.median(func(r *result) float64 { return float64(r.Commit.N) }) == 0 {
				return "-"
			}
			return fmt.Sprintf("%.2f", s.median(f))
		}
		t.add(s.workload, s.variant,
			fmt.Sprintf("%.0f", s.median(func(r *result) float64 { return float64(r.Commits) })),
			fmt.Sprintf("%.1f", s.median(func(r *result) float64 { return r.Txn.P50 })),
			ms(func(r *result) float64 { return r.Commit.P50 }),
			ms(func(r *result) float64 { return r.Commit.P99 }),
			ms(func(r *result) float64 { return r.Commit.Max }),
			ms(func(r *result) float64 { return r.Flush.P50 }),
			ms(func(r *result) float64 { return r.Prepare.P50 }),
			ms(func(r *result) float64 { return r.EndTxn.P50 }),
		)
	}
	return t
}

func find(all []*series, workload, variant string) *series {
	for _, s := range all {
		if s.workload == workload && s.variant == variant {
			return s
		}
	}
	return nil
}

// ratioTable compares exactly-once with the others, run by run. The error of the
// mean says which differences mean nothing.
func ratioTable(all []*series) *table {
	t := &table{left: 2}
	t.add("workload", "exactly-once over", "per second", "mean", "us CPU")
	for _, s := range all {
		e := find(all, s.workload, eos.name)
		if e == nil || s == e {
			continue
		}
		rates := ratios(e.rates(), s.rates())
		mean, uncertain := meanOf(rates)
		t.add(s.workload, s.variant,
			spreadOf(rates).format("%.3f"),
			fmt.Sprintf("%.3f ± %.3f", mean, uncertain),
			spreadOf(ratios(e.cpus(), s.cpus())).format("%.3f"))
	}
	return t
}
