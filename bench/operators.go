package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
	"github.com/twmb/franz-go/pkg/kgo"
)

// What the operators are measured with: 100 records of 100 k keys in a
// millisecond of record time, so that a key comes about once a second.
const (
	operatorKeys = 100_000
	perMs        = 100
	window       = 10 * time.Second
	hop          = time.Second
	gap          = 500 * time.Millisecond
	near         = time.Second
	dedupTTL     = 10 * time.Second
	hops         = int64(window / hop)
)

// rowsOf is the topic of the table that a topic is joined with.
func rowsOf(topic string) string { return topic + "-rows" }

func tumbling(in, out string) func(*stream.Builder) {
	return windowed(in, out, stream.Tumbling(window, 0))
}

func hopping(in, out string) func(*stream.Builder) {
	return windowed(in, out, stream.Hopping(window, hop, 0))
}

// hoppingFinal sends one result per key and window, made of panes. The others
// send each window that has changed, with each transaction.
func hoppingFinal(in, out string) func(*stream.Builder) {
	return func(b *stream.Builder) {
		b.Stream(texts(in)).GroupByKey().Windowed(stream.Hopping(window, hop, 0)).Count(store, stream.Panes()).Final().
			To(stream.NewTopic(out, stream.WindowKey(codec.String, window), codec.Int64))
	}
}

func windowed(in, out string, w stream.Windows) func(*stream.Builder) {
	return func(b *stream.Builder) {
		b.Stream(texts(in)).GroupByKey().Windowed(w).Count(store).
			To(stream.NewTopic(out, stream.WindowKey(codec.String, window), codec.Int64))
	}
}

func sessions(in, out string) func(*stream.Builder) {
	return func(b *stream.Builder) {
		b.Stream(texts(in)).GroupByKey().Sessions(gap, 0).Count(store).
			To(stream.NewTopic(out, stream.SessionKey(codec.String), codec.Int64))
	}
}

// dedup drops nothing: each record has an id of its own, its number.
func dedup(in, out string) func(*stream.Builder) {
	return func(b *stream.Builder) {
		b.Stream(texts(in)).Dedup(store, func(_, v string) string { return v[:8] }, dedupTTL).To(texts(out))
	}
}

func joinTable(in, out string) func(*stream.Builder) {
	return func(b *stream.Builder) {
		rows := b.Table(texts(rowsOf(in)), store)
		b.Stream(texts(in)).Join(rows, func(v, _ string) string { return v }).To(texts(out))
	}
}

// joinStream joins the records with even numbers and those with odd ones.
func joinStream(in, out string) func(*stream.Builder) {
	return func(b *stream.Builder) {
		all := b.Stream(texts(in))
		odd := func(v string) bool { return v[7]&1 == 1 }
		left := all.Filter(func(_, v string) bool { return !odd(v) })
		right := all.Filter(func(_, v string) bool { return odd(v) })
		left.JoinStream(store, right, stream.Within(near, 0), func(l, _ string) string { return l }).To(texts(out))
	}
}

// An operator is a topology that is compared with the count.
type operator struct {
	name  string
	want  float64 // of the count's records per second; 0 is no goal
	check check
	more  int64 // records that it reads beside the source
}

var operators = []operator{
	{"tumbling", 0.7, checkWindows(1), 0},
	{"hopping-final", 0.35, checkFinals, 0},
	{"hopping", 0, checkWindows(hops), 0},
	{"join-table", 0.8, checkCopies, operatorKeys},
	{"dedup", 0.7, checkCopies, 0},
	{"sessions", 0.4, checkWindows(1), 0},
	{"join-stream", 0.3, checkPairs, 0},
}

// operators measures each operator beside the count of the same records.
func (b *bench) operators(ctx context.Context) error {
	src, err := b.c.loadTimed(ctx, b.name("timed-100k"), b.records, b.valueSize)
	if err != nil {
		return err
	}
	as := func(topology string, check check, more int64) variant {
		return variant{name: topology, set: func(s *spec) { s.Kind, s.Topology = kindApp, topology }, check: check, more: more}
	}
	w := workload{name: "operators", variants: []variant{as("count", checkCounts, 0)}}
	for _, o := range operators {
		if b.wants(o.name) {
			w.variants = append(w.variants, as(o.name, o.check, o.more))
		}
	}
	all, err := b.rounds(ctx, w, src)
	if err != nil {
		return err
	}
	if err := b.c.deleteTopics(ctx, src.topic, rowsOf(src.topic)); err != nil {
		return err
	}
	return b.write("operators", operatorReport(all, b))
}

// loadTimed is loadKeys in record time, with a table's rows beside it.
func (c *cluster) loadTimed(ctx context.Context, topic string, n int64, size int) (*source, error) {
	// The last records of all partitions are between the same ends of windows.
	begun := time.Now().Add(-time.Duration(n/perMs) * time.Millisecond).Truncate(hop).Add(-hop / 2)
	last := begun.Add(time.Duration((n-1)/perMs) * time.Millisecond)
	if err := c.makeTableTopic(ctx, rowsOf(topic)); err != nil {
		return nil, err
	}
	rows, err := c.fill(rowsOf(topic), "rows")
	if err != nil {
		return nil, err
	}
	before := begun.Add(-time.Millisecond) // Kafka Streams would take either first of the same time
	for i := range uint64(operatorKeys) {
		rows.send(ctx, &kgo.Record{Key: key16(i), Value: value(i, size), Timestamp: before})
	}
	if _, err := rows.close(ctx); err != nil {
		return nil, err
	}
	l, err := c.newLoader(ctx, topic, "records")
	if err != nil {
		return nil, err
	}
	next, met := uniform(operatorKeys), meetings{}
	for i := range n {
		at := i / perMs
		k := key16(next())
		l.src.counts[string(k)]++
		l.src.pairs += met.meet(string(k), i, at)
		t := begun.Add(time.Duration(at) * time.Millisecond)
		l.src.finals[string(k)] += closedWindows(t, last)
		l.send(ctx, &kgo.Record{Key: k, Value: value(uint64(i), size), Timestamp: t})
	}
	l.src.records = n
	return l.close(ctx)
}

// closedWindows is in how many hopping windows a record at t is that have closed
// at last.
func closedWindows(t, last time.Time) (n int64) {
	for start := t.Truncate(hop); start.Add(window).After(t); start = start.Add(-hop) {
		if !start.Add(window).After(last) {
			n++
		}
	}
	return n
}

// meetings are the last records of each key, for the pairs that a join makes.
type meetings map[string][]meeting

type meeting struct{ number, at int64 }

// meet says with how many earlier records a record is joined.
func (m meetings) meet(key string, number, at int64) (pairs int64) {
	kept := m[key][:0]
	for _, e := range m[key] {
		if at-e.at > near.Milliseconds() {
			continue
		}
		kept = append(kept, e)
		if (e.number^number)&1 == 1 {
			pairs++
		}
	}
	m[key] = append(kept, meeting{number, at})
	return pairs
}

// checkWindows wants the last counts of a key's windows to add up to what the
// source has of it, so many times.
func checkWindows(times int64) check {
	return func(ctx context.Context, c *cluster, out string, src *source) error {
		last := map[string]int64{}
		err := c.readAll(ctx, out, func(r *kgo.Record) {
			n, ok := countOf(r)
			if !ok {
				delete(last, string(r.Key))
				return
			}
			last[string(r.Key)] = n
		})
		if err != nil {
			return err
		}
		sums := make(map[string]int64, len(src.counts))
		for k, n := range last {
			sums[k[:16]] += n
		}
		want := make(map[string]int64, len(src.counts))
		for k, n := range src.counts {
			want[k] = n * times
		}
		return (&tally{last: sums}).compare(want)
	}
}

// checkFinals wants each window once, and the counts of a key's to add up to
// what the source has of it in windows that have closed.
func checkFinals(ctx context.Context, c *cluster, out string, src *source) error {
	sums := make(map[string]int64, len(src.counts))
	seen := map[string]bool{}
	var twice, strange int64
	err := c.readAll(ctx, out, func(r *kgo.Record) {
		n, ok := countOf(r)
		if !ok {
			strange++
			return
		}
		if seen[string(r.Key)] {
			twice++
		}
		seen[string(r.Key)] = true
		sums[string(r.Key[:16])] += n
	})
	if err != nil {
		return err
	}
	if twice+strange > 0 {
		return fmt.Errorf("wrong output: %d windows were final twice, %d results are no counts", twice, strange)
	}
	want := make(map[string]int64, len(src.finals))
	for k, n := range src.finals {
		if n > 0 {
			want[k] = n
		}
	}
	return (&tally{last: sums}).compare(want)
}

// checkPairs wants as many results as there are pairs.
func checkPairs(ctx context.Context, c *cluster, out string, src *source) error {
	var n int64
	if err := c.readAll(ctx, out, func(*kgo.Record) { n++ }); err != nil {
		return err
	}
	if n != src.pairs {
		return fmt.Errorf("wrong output: %d pairs of %d", n, src.pairs)
	}
	return nil
}

func operatorReport(all []*series, b *bench) string {
	var t strings.Builder
	fmt.Fprintf(&t, "A loaded topic of %d partitions (16-byte keys, %d of them, %d-byte values, %d records in a millisecond of\n"+
		"record time) is drained exactly once by a child process: %d rounds, alternating. count: by key. tumbling: counts in\n"+
		"windows of %v. hopping: the same, each %v, and each update is sent. hopping-final: by panes, results are final. join-table: with a row for each key. dedup: by the record's number, for %v.\n"+
		"sessions: counts, gap %v. join-stream: even with odd numbers, within %v. Rates are of input records. Median\n"+
		"[min..max]. Every output was checked.\n"+touchedText+"workers %d, commit interval %v, no compression, linger 5ms\n\n",
		partitions, operatorKeys, b.valueSize, perMs, b.pairs, window, hop, dedupTTL, gap, near, b.workers, b.commit)
	t.WriteString(rateTable(all).String() + "\n")
	t.WriteString(commitTable(all).String() + "\n")
	t.WriteString(b.goals(operatorGoals(all)))
	return t.String()
}

func operatorGoals(all []*series) (goals []goal) {
	count := find(all, "operators", "count")
	for _, o := range operators {
		if s := find(all, "operators", o.name); s != nil && o.want > 0 {
			goals = append(goals, goal{o.name + " over count", o.want, true, spreadOf(ratios(s.rates(), count.rates())).Median, ""})
		}
	}
	return goals
}
