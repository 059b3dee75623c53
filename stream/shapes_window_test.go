package stream_test

import (
	"maps"
	"strconv"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// The golden shapes of time windows and their final results.

func init() {
	maps.Copy(shapes, map[string]func(*stream.Builder){
		"tumbling-count":                   shapeTumblingCount,
		"tumbling-count-grace":             shapeTumblingCountGrace,
		"tumbling-minute":                  shapeTumblingMinute,
		"tumbling-reduce":                  shapeTumblingReduce,
		"hopping-count":                    shapeHoppingCount,
		"hopping-cat":                      shapeHoppingCat,
		"tumbling-close":                   shapeTumblingClose,
		"tumbling-close-no-grace":          shapeTumblingCloseNoGrace,
		"hopping-close":                    shapeHoppingClose,
		"tumbling-close-default-retention": shapeTumblingCloseDefaultRetention,
		"suppress-tumbling":                shapeSuppressTumbling,
		"suppress-hopping":                 shapeSuppressHopping,
		"suppress-full-stops":              shapeSuppressFullStops,
		"windowed-regrouped":               shapeWindowedRegrouped,
		"windowed-table-regrouped":         shapeWindowedTableRegrouped,
	})
}

type window = stream.Windowed[string]

var (
	windowedNumbers = stream.NewTopic("out", stream.WindowKey(codec.String, 10*ms), codec.Int64)
	windowedText    = stream.NewTopic("out", stream.WindowKey(codec.String, 10*ms), codec.String)
)

// cat is cat12 as an aggregator.
func cat(_, v, acc string) string { return cat12(acc, v) }

// eachWindow is each for aggregates by window.
func eachWindow(more ...stream.WindowOption) []stream.WindowOption {
	if len(each) > 0 {
		return append(more, stream.EmitEach())
	}
	return more
}

func tumbling(b *stream.Builder, grace time.Duration) stream.WindowedGroup[string, string] {
	return b.Stream(in).GroupByKey().Windowed(stream.Tumbling(10*ms, grace))
}

func hopping(b *stream.Builder, every, grace time.Duration) stream.WindowedGroup[string, string] {
	return b.Stream(in).GroupByKey().Windowed(stream.Hopping(10*ms, every, grace))
}

func shapeTumblingCount(b *stream.Builder) {
	tumbling(b, 0).Count("counts", eachWindow()...).To(windowedNumbers)
}

func shapeTumblingCountGrace(b *stream.Builder) {
	tumbling(b, 5*ms).Count("counts", eachWindow()...).To(windowedNumbers)
}

func shapeTumblingMinute(b *stream.Builder) {
	minutes := stream.NewTopic("out", stream.WindowKey(codec.String, time.Minute), codec.String)
	b.Stream(in).GroupByKey().
		Windowed(stream.Tumbling(time.Minute, 10*time.Second)).
		Aggregate("agg", cat, eachWindow(stream.Retain(5*time.Minute))...).
		To(minutes)
}

func shapeTumblingReduce(b *stream.Builder) {
	tumbling(b, 5*ms).Reduce("reduced", cat12, eachWindow()...).To(windowedText)
}

func shapeHoppingCount(b *stream.Builder) {
	hopping(b, 5*ms, 0).Count("counts", eachWindow()...).To(windowedNumbers)
}

func shapeHoppingCat(b *stream.Builder) {
	hopping(b, 3*ms, 4*ms).Aggregate("agg", cat, eachWindow()...).To(windowedText)
}

// longer is what the reference needs to lose no final result.
const longer = 1000000 * ms

func shapeTumblingClose(b *stream.Builder) {
	tumbling(b, 5*ms).Count("counts", stream.Retain(longer)).Final().To(windowedNumbers)
}

func shapeTumblingCloseNoGrace(b *stream.Builder) {
	tumbling(b, 0).Reduce("reduced", cat12, stream.Retain(longer)).Final().To(windowedText)
}

func shapeHoppingClose(b *stream.Builder) {
	hopping(b, 5*ms, 3*ms).Aggregate("agg", cat, stream.Retain(longer)).Final().To(windowedText)
}

func shapeTumblingCloseDefaultRetention(b *stream.Builder) {
	tumbling(b, 5*ms).Count("counts").Final().To(windowedNumbers)
}

func shapeSuppressTumbling(b *stream.Builder) {
	tumbling(b, 5*ms).Count("counts").Final().To(windowedNumbers)
}

func shapeSuppressHopping(b *stream.Builder) {
	hopping(b, 5*ms, 0).Aggregate("agg", cat).Final().To(windowedText)
}

func shapeSuppressFullStops(b *stream.Builder) {
	tumbling(b, 5*ms).Count("counts").Final(stream.MaxKeys(2)).To(windowedNumbers)
}

func shapeWindowedRegrouped(b *stream.Builder) {
	tumbling(b, 5*ms).Count("n", eachWindow()...).
		ToStream(stream.KeepWindow).
		Map(func(w window, n int64) (string, string) {
			return strconv.FormatInt(w.Start.UnixMilli(), 10), w.Key + strconv.FormatInt(n, 10)
		}).
		GroupByKey().
		Count("updates", each...).
		To(numOut)
}

func shapeWindowedTableRegrouped(b *stream.Builder) {
	tumbling(b, 5*ms).Count("n", eachWindow()...).
		GroupBy(func(w window, n int64) (string, int64) { return w.Key, n }).
		Aggregate("sum", add, sub, each...).
		To(numOut)
}
