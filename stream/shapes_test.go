package stream_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream"
)

// The golden shapes, written as a user would write them. golden_test.go runs
// them; shapes lists them.

// All text topics have text keys and values; numbers counts or sums.
type (
	rec  = stream.Record[string, string]
	text = stream.Topic[string, string]
)

func topic(name string) text { return stream.NewTopic(name, codec.String, codec.String) }

func numbers(name string) stream.Topic[string, int64] {
	return stream.NewTopic(name, codec.String, codec.Int64)
}

var (
	in, out = topic("in"), topic("out")
	s, t    = topic("s"), topic("t")
	l, r    = topic("l"), topic("r")
	numOut  = numbers("out")
)

const ms = time.Millisecond

// each makes the aggregates send every update, as the reference did.
var each = []stream.AggregateOption{stream.EmitEach()}

func at(millis int64) time.Time { return time.UnixMilli(millis) }

func last12(s string) string { return s[max(0, len(s)-12):] }

func cat12(acc, v string) string { return last12(acc + v) }

// The joiners of all join shapes.
func joined(l, r string) string { return l + "+" + r }

func joinedLeft(l, r string, ok bool) string { return l + "+" + orNull(r, ok) }

func joinedOuter(l string, lok bool, r string, rok bool) string {
	return orNull(l, lok) + "+" + orNull(r, rok)
}

func orNull(s string, ok bool) string {
	if !ok {
		return "null"
	}
	return s
}

// value and key print a record's parts, or null.
func value(r rec) string { return orNull(r.Value, !r.NoValue) }

func key(r rec) string { return orNull(r.Key, !r.NoKey) }

// grouped reads "g:n" and is false if either is empty.
func grouped(v string) (group string, n int64, ok bool) {
	g, digits, _ := strings.Cut(v, ":")
	n, err := strconv.ParseInt(digits, 10, 64)
	return g, n, g != "" && err == nil
}

func inGroup(_, v string) bool { _, _, ok := grouped(v); return ok }

func byGroup(_, v string) (string, int64) { g, n, _ := grouped(v); return g, n }

func byGroupText(_, v string) (string, string) { g, n, _ := strings.Cut(v, ":"); return g, n }

func add(_ string, v, acc int64) int64 { return acc + v }

func sub(_ string, v, acc int64) int64 { return acc - v }

func shapeFilterPair(b *stream.Builder) {
	in := b.Stream(in)
	in.FilterRecords(func(r rec) bool { return !r.NoValue && !strings.HasPrefix(r.Value, "x") }).To(topic("kept"))
	in.Filter(func(_, v string) bool { return len(v) <= 2 }).To(topic("not")) // a tombstone passes, as wanted
}

func shapeMapTrio(b *stream.Builder) {
	in := b.Stream(in)
	in.MapRecords(func(r rec) rec {
		out := r.WithValue(key(r) + ":" + value(r))
		if r.Value == "" {
			return out.WithoutKey()
		}
		return out.WithKey(r.Value[:1])
	}).To(topic("mapped"))
	in.Process(func(c *textContext, r rec) error { // FlatMap would see a null key as ""
		for i, part := range strings.Split(r.Value, ",") {
			if err := c.Emit(r.WithKey(part).WithValue(key(r) + strconv.Itoa(i))); err != nil {
				return err
			}
		}
		return nil
	}).To(topic("flat"))
	in.MapRecords(func(r rec) rec {
		if r.NoValue {
			return r.WithoutKey()
		}
		return r.WithKey(r.Value)
	}).To(topic("selected"))
}

func shapeValuesPair(b *stream.Builder) {
	in := b.Stream(in)
	in.MapRecords(func(r rec) rec { return r.WithValue(key(r) + "/" + value(r)) }).To(topic("mapped"))
	in.FilterRecords(stream.HasValue).FlatMapValues(chars).To(topic("flat"))
}

func chars(v string) []string { return strings.Split(v, "") }

func shapeBranchDefault(b *stream.Builder) {
	a, rest := b.Stream(in).SplitRecords(startsWithA)
	long, rest := rest.SplitRecords(isLong)
	a.To(topic("a"))
	long.To(topic("long"))
	rest.To(topic("rest"))
}

func startsWithA(r rec) bool { return strings.HasPrefix(r.Value, "a") }

func isLong(r rec) bool { return len(r.Value) >= 3 }

func shapeBranchNoDefault(b *stream.Builder) {
	a, rest := b.Stream(in).SplitRecords(startsWithA)
	a.To(topic("a"))
	rest.FilterRecords(isLong).To(topic("long"))
}

func shapeMergeTwo(b *stream.Builder) {
	two := b.Stream(topic("in2")).MapRecords(func(r rec) rec { return r.WithValue("2" + value(r)) })
	b.Stream(topic("in1")).Merge(two).To(out)
}

func shapeRepartition(b *stream.Builder) {
	b.Stream(in).MapRecords(func(r rec) rec {
		switch {
		case r.NoValue:
			return r
		case strings.HasPrefix(r.Value, "n"):
			return r.WithoutKey()
		}
		return r.WithKey(r.Value[:1])
	}).Repartition("rp").To(out)
}

func shapeRouteByValue(b *stream.Builder) {
	toA, toB := out.Named("out-a"), out.Named("out-b")
	b.Stream(in).Route(func(r rec) text {
		if strings.HasPrefix(r.Value, "a") {
			return toA
		}
		return toB
	})
}

func shapeOwnTimestamp(b *stream.Builder) {
	timed := in.EventTime(func(r rec, latest time.Time) (time.Time, bool) {
		if r.NoValue {
			return latest, !latest.IsZero()
		}
		digits, _, _ := strings.Cut(r.Value, ":")
		millis, err := strconv.ParseInt(digits, 10, 64)
		return at(millis), err == nil && millis >= 0
	})
	in := b.Stream(timed)
	in.To(out)
	in.GroupByKey().Count("n", each...).To(numbers("counts"))
}

func shapeCount(b *stream.Builder) {
	b.Stream(in).GroupByKey().Count("counts", each...).To(numOut)
}

func shapeReduce(b *stream.Builder) {
	b.Stream(in).GroupByKey().Reduce("reduced", cat12, each...).To(out)
}

func shapeAggregateDelete(b *stream.Builder) {
	b.Stream(in).GroupByKey().
		Update("agg", func(_, v, row string, ok bool) (string, bool) {
			if !ok {
				row = "0"
			}
			return cat12(row, v), v != "DEL"
		}, each...).
		To(out)
}

func shapeSumLong(b *stream.Builder) {
	b.Stream(numbers("in")).GroupByKey().Aggregate("sum", add, each...).To(numOut)
}

func shapeGroupByCount(b *stream.Builder) {
	b.Stream(in).
		Filter(func(_, v string) bool { return !strings.HasPrefix(v, "n") }).
		GroupBy(func(_, v string) string { return v }).
		Count("counts", each...).
		To(numOut)
}

func long(_, v string) bool { return len(v) > 2 }

func shapeTableSource(b *stream.Builder) {
	b.Table(in, "t").ToStream().To(out)
}

func shapeTableFilter(b *stream.Builder) {
	t := b.Table(in, "t")
	t.Filter(long).To(topic("kept"))
	t.Filter(func(k, v string) bool { return !long(k, v) }).To(topic("not"))
}

func shapeTableFilterStore(b *stream.Builder) {
	b.Table(in, "t").Filter(long).Stored("kept").To(out)
}

func shapeTableMapValues(b *stream.Builder) {
	t := b.Table(in, "t")
	t.MapValuesWithKey(func(k, v string) string { return k + "/" + v }).To(topic("plain"))
	t.MapOrDelete(func(_, v string) (string, bool) { return "s" + v, v != "p" }).
		Stored("mapped").
		To(topic("stored"))
}

func shapeToTable(b *stream.Builder) {
	b.Stream(in).ToTable("t").To(out)
}

func shapeToTableRekeyed(b *stream.Builder) {
	b.Stream(in).
		MapRecords(func(r rec) rec {
			if r.NoValue {
				return r // keeps its key, so that it deletes
			}
			return r.WithKey(r.Value[:1])
		}).
		ToTable("t").
		Filter(func(_, v string) bool { return len(v) > 1 }).
		To(out)
}

func shapeTableGroupCount(b *stream.Builder) {
	b.Table(in, "t").Filter(inGroup).GroupBy(byGroupText).Count("counts", each...).To(numOut)
}

func shapeTableGroupSum(b *stream.Builder) {
	b.Table(in, "t").Filter(inGroup).GroupBy(byGroup).Aggregate("sums", add, sub, each...).To(numOut)
}

func shapeTableGroupReduce(b *stream.Builder) {
	b.Table(in, "t").Filter(inGroup).GroupBy(byGroup).
		Reduce("sums",
			func(acc, v int64) int64 { return acc + v },
			func(acc, v int64) int64 { return acc - v }, each...).
		To(numOut)
}

func shapeTableGroupTrace(b *stream.Builder) {
	b.Table(in, "t").Filter(inGroup).GroupBy(byGroupText).
		Aggregate("trace",
			func(_, v, acc string) string { return last12(acc + "+" + v) },
			func(_, v, acc string) string { return last12(acc + "-" + v) }, each...).
		To(out)
}

func shapeTableDeleteGroup(b *stream.Builder) {
	b.Table(in, "t").Filter(inGroup).GroupBy(byGroup).
		Update("sums",
			func(_ string, v, sum int64, _ bool) (int64, bool) { return sum + v, sum+v <= 20 },
			func(_ string, v, sum int64, _ bool) (int64, bool) { return sum - v, sum != v }, each...).
		To(numOut)
}

func shapeTableChainGroup(b *stream.Builder) {
	b.Table(in, "t").
		Filter(func(_, v string) bool { return !strings.HasSuffix(v, "0") }).
		MapValues(func(v string) string { return v + "!" }).
		GroupBy(byGroupText).
		Count("counts", each...).
		To(numOut)
}

func shapeStInner(b *stream.Builder) {
	b.Stream(s).Join(b.Table(t, "tab"), joined).To(out)
}

func shapeStLeft(b *stream.Builder) {
	b.Stream(s).LeftJoin(b.Table(t, "tab"), joinedLeft).To(out)
}

func shapeStLeftRekeyed(b *stream.Builder) {
	b.Stream(s).
		MapRecords(func(r rec) rec {
			k, _, _ := strings.Cut(r.Value, ":")
			if k == "" {
				return r.WithoutKey()
			}
			return r.WithKey(k)
		}).
		LeftJoin(b.Table(t, "tab"), joinedLeft, stream.Name("rk")).
		To(out)
}

func shapeCountOfCounts(b *stream.Builder) {
	b.Stream(in).GroupByKey().Count("n", each...).
		GroupBy(func(k string, n int64) (string, string) { return strconv.FormatInt(n, 10), k }).
		Count("keys", each...).
		To(numOut)
}

func shapeRekeyCountRekeyReduce(b *stream.Builder) {
	b.Stream(in).
		GroupBy(func(_, v string) string { return v }).
		Count("n", each...).
		ToStream().
		Map(func(k string, n int64) (string, string) {
			if n%2 == 0 {
				return "even", k
			}
			return "odd", k
		}).
		GroupByKey().
		Reduce("r", cat12, each...).
		To(out)
}

func shapeBranchMergeGroup(b *stream.Builder) {
	big, rest := b.Stream(in).FilterRecords(stream.HasValue).Split(func(_, v string) bool { return v > "m" })
	big.MapValues(strings.ToUpper).
		Merge(rest.FlatMapValues(twice)).
		SelectKey(func(_, v string) string { return v[:1] }).
		GroupByKey().
		Count("n", each...).
		To(numOut)
}

func twice(v string) []string { return []string{v, v} }

func shapeCountJoinedBack(b *stream.Builder) {
	in := b.Stream(in)
	n := in.GroupByKey().Count("n", each...)
	in.LeftJoin(n, func(v string, n int64, ok bool) string {
		return v + "+" + orNull(strconv.FormatInt(n, 10), ok)
	}).To(out)
}

func shapeHeadersChain(b *stream.Builder) {
	in := b.Stream(in)
	in.MapValues(func(v string) string { return v + "!" }).To(topic("mapped"))
	in.FlatMapValues(twice).To(topic("flat"))
	in.SelectKey(func(_, v string) string { return v }).Repartition("rp").To(topic("moved"))
	in.GroupByKey().Count("n", each...).To(numbers("counted"))
}

type textContext = stream.Context[string, string]

// A counter counts records by key and reports all counts when its timer fires.
type counter struct {
	counts   stream.Store[string, int64]
	schedule stream.Schedule
	stopAt   int
	calls    int
	timer    *stream.Timer
}

func (p *counter) Init(c *textContext) error {
	p.timer = c.Schedule(p.schedule, p.report)
	return nil
}

func (p *counter) Process(c *textContext, r rec) error {
	counts := p.counts.In(c)
	switch {
	case r.NoKey:
		return nil
	case r.NoValue:
		return counts.Delete(r.Key)
	}
	n, _, err := counts.Get(r.Key)
	if err != nil {
		return err
	}
	return counts.Put(r.Key, n+1)
}

func (p *counter) report(c *textContext, now time.Time) error {
	p.calls++
	if p.calls == p.stopAt {
		p.timer.Cancel()
	}
	head := rec{Key: fmt.Sprint("#", p.calls), Value: fmt.Sprint("at ", now.UnixMilli()), Time: now}
	if err := c.Emit(head); err != nil {
		return err
	}
	for row, err := range p.counts.In(c).All() {
		if err != nil {
			return err
		}
		if err := c.Emit(rec{Key: row.Key, Value: strconv.FormatInt(row.Value, 10), Time: now}); err != nil {
			return err
		}
	}
	return nil
}

func count(b *stream.Builder, schedule stream.Schedule, stopAt int) {
	counts := b.Store("counts", codec.String, codec.Int64)
	newCounter := func() *counter { return &counter{counts: counts, schedule: schedule, stopAt: stopAt} }
	b.Stream(in).ProcessWith(newCounter, stream.Uses(counts), stream.Tombstones()).To(out)
}

func shapeStreamTimeTimer(b *stream.Builder) {
	count(b, stream.Schedule{Every: 10 * ms}, 0)
}

func shapeWallClockTimer(b *stream.Builder) {
	count(b, stream.Schedule{Every: time.Second, WallClock: true}, 0)
}

func shapeAnchoredTimer(b *stream.Builder) {
	count(b, stream.Schedule{Every: 10 * ms, From: at(7)}, 0)
}

func shapeAnchoredWallTimer(b *stream.Builder) {
	count(b, stream.Schedule{Every: time.Second, From: at(2500), WallClock: true}, 0)
}

func shapeCancelledTimer(b *stream.Builder) {
	count(b, stream.Schedule{Every: 10 * ms}, 3)
}

func shapeNamedChildren(b *stream.Builder) {
	first, second := b.Output[string, string]("first"), b.Output[string, string]("second")
	b.Stream(in, stream.Name("src")).
		Process(func(c *textContext, r rec) error {
			both := func(r rec) error {
				if err := first.Emit(c, r); err != nil {
					return err
				}
				return second.Emit(c, r)
			}
			switch {
			case r.NoValue:
				return both(r)
			case strings.HasPrefix(r.Value, "1"):
				return first.Emit(c, r)
			case strings.HasPrefix(r.Value, "2"):
				return second.Emit(c, r)
			case strings.HasPrefix(r.Value, "b"):
				if err := both(r.WithTime(r.Time.Add(ms))); err != nil {
					return err
				}
				return first.Emit(c, r)
			}
			return nil
		}, stream.Name("router"), stream.Uses(first, second), stream.Tombstones())

	mark := func(name string) func(rec) rec {
		return func(r rec) rec {
			return r.WithValue(fmt.Sprintf("%s|%s@%d", value(r), name, r.Time.UnixMilli()))
		}
	}
	first.Stream().MapRecords(mark("first"), stream.Name("first")).To(topic("out1"), stream.Name("sink1"))
	second.Stream().MapRecords(mark("second"), stream.Name("second")).To(topic("out2"), stream.Name("sink2"))
}

func shapeRunningTotal(b *stream.Builder) {
	last := b.Store("last", codec.String, codec.String)
	b.Stream(in).
		ProcessValues(func(c *stream.ValueContext[string], r rec) error {
			last := last.In(c)
			switch {
			case r.NoKey && r.NoValue:
				return c.EmitTombstone()
			case r.NoKey:
				return c.Emit(r.Value)
			case r.NoValue:
				if err := last.Delete(r.Key); err != nil {
					return err
				}
				return c.EmitTombstone()
			}
			total, _, err := last.Get(r.Key)
			if err != nil {
				return err
			}
			total = cat12(total, r.Value)
			if err := last.Put(r.Key, total); err != nil {
				return err
			}
			return c.Emit(total)
		}, stream.Uses(last), stream.Tombstones()).
		To(out)
}

type valueContext = stream.ValueContext[string]

// command reads the name and arguments of a command.
func command(v string) (name string, arg [4]string) {
	name, rest, _ := strings.Cut(v, ":")
	copy(arg[:], strings.Split(rest, ":"))
	return name, arg
}

// show prints rows, or the one value of a read.
func show[K any](rows state.Rows[K, string], print func(K) string) (string, error) {
	var parts []string
	for row, err := range rows {
		if err != nil {
			return "", err
		}
		parts = append(parts, print(row.Key)+"="+row.Value)
	}
	return "[" + strings.Join(parts, ", ") + "]", nil
}

func plain(k string) string { return k }

// answer runs commands against a store and emits the answers.
func answer(f func(*valueContext, rec) (string, error)) func(*valueContext, rec) error {
	return func(c *valueContext, r rec) error {
		if r.NoKey {
			return nil
		}
		text, err := f(c, r)
		if err != nil {
			return err
		}
		return c.Emit(text)
	}
}

func shapeKvCommands(b *stream.Builder) {
	kv := b.Store("kv", codec.String, codec.String)
	b.Stream(in).ProcessValues(answer(func(c *valueContext, r rec) (string, error) {
		kv := kv.In(c)
		name, arg := command(r.Value)
		between := func(rd state.Reader[string, string]) state.Rows[string, string] {
			switch from, to := arg[0], arg[1]; {
			case from == "*" && to == "*":
				return rd.All()
			case from == "*":
				return rd.To(to)
			case to == "*":
				return rd.From(from)
			default:
				return rd.Range(from, to)
			}
		}
		old, had, err := kv.Get(r.Key)
		if err != nil {
			return "", err
		}
		switch name {
		case "put":
			return "ok", kv.Put(r.Key, arg[0])
		case "del":
			return orNull(old, had), kv.Delete(r.Key)
		case "get":
			return orNull(old, had), nil
		case "pia":
			if had {
				return old, nil
			}
			return "null", kv.Put(r.Key, arg[0])
		case "range":
			return show(between(kv), plain)
		case "rrange":
			return show(between(kv.Backward()), plain)
		case "all":
			return show(kv.All(), plain)
		case "rall":
			return show(kv.Backward().All(), plain)
		case "prefix":
			return show(kv.Prefix([]byte(arg[0])), plain)
		}
		return "", fmt.Errorf("unknown command %q", name)
	}), stream.Uses(kv)).To(out)
}

// shapes are the golden shapes by name.
var shapes = map[string]func(*stream.Builder){
	"filter-pair":              shapeFilterPair,
	"map-trio":                 shapeMapTrio,
	"values-pair":              shapeValuesPair,
	"branch-default":           shapeBranchDefault,
	"branch-no-default":        shapeBranchNoDefault,
	"merge-two":                shapeMergeTwo,
	"repartition":              shapeRepartition,
	"route-by-value":           shapeRouteByValue,
	"own-timestamp":            shapeOwnTimestamp,
	"count":                    shapeCount,
	"reduce":                   shapeReduce,
	"aggregate-delete":         shapeAggregateDelete,
	"sum-long":                 shapeSumLong,
	"group-by-count":           shapeGroupByCount,
	"table-source":             shapeTableSource,
	"table-filter":             shapeTableFilter,
	"table-filter-store":       shapeTableFilterStore,
	"table-map-values":         shapeTableMapValues,
	"to-table":                 shapeToTable,
	"to-table-rekeyed":         shapeToTableRekeyed,
	"table-group-count":        shapeTableGroupCount,
	"table-group-sum":          shapeTableGroupSum,
	"table-group-reduce":       shapeTableGroupReduce,
	"table-group-trace":        shapeTableGroupTrace,
	"table-delete-group":       shapeTableDeleteGroup,
	"table-chain-group":        shapeTableChainGroup,
	"st-inner":                 shapeStInner,
	"st-left":                  shapeStLeft,
	"st-left-rekeyed":          shapeStLeftRekeyed,
	"count-of-counts":          shapeCountOfCounts,
	"rekey-count-rekey-reduce": shapeRekeyCountRekeyReduce,
	"branch-merge-group":       shapeBranchMergeGroup,
	"count-joined-back":        shapeCountJoinedBack,
	"headers-chain":            shapeHeadersChain,
	"stream-time-timer":        shapeStreamTimeTimer,
	"wall-clock-timer":         shapeWallClockTimer,
	"anchored-timer":           shapeAnchoredTimer,
	"anchored-wall-timer":      shapeAnchoredWallTimer,
	"cancelled-timer":          shapeCancelledTimer,
	"named-children":           shapeNamedChildren,
	"running-total":            shapeRunningTotal,
	"kv-commands":              shapeKvCommands,
}
