package stream

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
)

func byRegion[V any](r Record[string, V], n int) int { return len(r.Key) % n }

// described are topologies whose descriptions are golden files.
var described = map[string]func(*Builder){
	"wordcount": func(b *Builder) {
		b.Stream(NewTopic("lines", codec.String, codec.String)).
			FlatMapValues(strings.Fields).
			MapValues(strings.ToLower).
			GroupBy(func(_, word string) string { return word }).
			Count("counts").
			To(NewTopic("word-counts", codec.String, codec.Int64))
	},
	"branches": func(b *Builder) {
		big, rest := b.Stream(texts, FromEnd(), Name("in")).Split(long, Name("size"))
		big.Merge(rest.MapValues(strings.ToUpper), b.Stream(texts2, FromAgo(time.Hour))).
			Peek(func(string, string) {}).
			Repartition("wide", Partitions(12)).
			To(out, Name("last"))
		rest.Route(func(Record[string, string]) Topic[string, string] { return out2 })
	},
	"patterns": func(b *Builder) {
		b.Stream(texts, Matching(regexp.MustCompile(`te(xt|st)s-\d+ of .*`)), FromEnd(), Name("all")).GroupByKey().Count("n").To(intOut)
	},
	"joins": func(b *Builder) {
		customers := b.Table(NewTopic("customers", codec.String, codec.String).PartitionBy(byRegion), "customers", InMemory())
		orders := b.Stream(NewTopic("orders", codec.String, codec.Int64).PartitionBy(byRegion))
		orders.LeftJoin(customers, func(n int64, c string, ok bool) string { return c }).To(out)
		orders.Map(func(k string, n int64) (string, int64) { return k, n }).
			GroupByKey().
			Reduce("sums", func(a, n int64) int64 { return a + n }, NoChangelog()).
			MapValues(func(n int64) int64 { return -n }).
			Stored("negative", ChangelogConfig(map[string]string{"segment.ms": "1000", "cleanup.policy": "compact,delete"}))
	},
}

func TestDescribeIsStableText(t *testing.T) {
	for name, define := range described {
		t.Run(name, func(t *testing.T) {
			top, err := Build(define)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "describe-"+name+".txt", top.Describe())
			golden(t, "describe-"+name+".json", string(top.DescribeJSON()))
			for range 5 {
				again, err := Build(define)
				if err != nil {
					t.Fatal(err)
				}
				if again.Describe() != top.Describe() {
					t.Fatalf("another run describes\n%s", again.Describe())
				}
			}
		})
	}
}
