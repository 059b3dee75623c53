package stream_test

import (
	"maps"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// The golden shapes of sessions and sliding windows and their final results.

func init() {
	maps.Copy(shapes, map[string]func(*stream.Builder){
		"session-count":    shapeSessionCount,
		"session-cat":      shapeSessionCat,
		"session-long-gap": shapeSessionLongGap,
		"session-close":    shapeSessionClose,
		"suppress-session": shapeSuppressSession,
		"sliding-count":    shapeSlidingCount,
		"sliding-cat":      shapeSlidingCat,
		"sliding-close":    shapeSlidingClose,
		"suppress-sliding": shapeSuppressSliding,
	})
}

var (
	sessionNumbers = stream.NewTopic("out", stream.SessionKey(codec.String), codec.Int64)
	sessionText    = stream.NewTopic("out", stream.SessionKey(codec.String), codec.String)
)

func shapeSessionCount(b *stream.Builder) {
	b.Stream(in).GroupByKey().Sessions(5*ms, 0).Count("counts", eachWindow()...).To(sessionNumbers)
}

func mergeCat(_, a, b string) string {
	s := a + "|" + b
	return s[max(0, len(s)-12):]
}

func shapeSessionCat(b *stream.Builder) {
	b.Stream(in).GroupByKey().Sessions(5*ms, 10*ms).Aggregate("agg", cat, mergeCat, eachWindow()...).To(sessionText)
}

func shapeSessionLongGap(b *stream.Builder) {
	b.Stream(in).GroupByKey().Sessions(5*time.Second, time.Minute).Reduce("reduced", cat12, eachWindow()...).To(sessionText)
}

func shapeSessionClose(b *stream.Builder) {
	b.Stream(in).GroupByKey().Sessions(5*ms, 3*ms).Count("counts").Final().To(sessionNumbers)
}

func shapeSuppressSession(b *stream.Builder) {
	b.Stream(in).GroupByKey().Sessions(5*ms, 3*ms).Count("counts").Final().To(sessionNumbers)
}

func slidingBy(b *stream.Builder, grace time.Duration) stream.WindowedGroup[string, string] {
	return b.Stream(in).GroupByKey().Windowed(stream.Sliding(10*ms, grace))
}

func shapeSlidingCount(b *stream.Builder) {
	slidingBy(b, 0).Count("counts", eachWindow()...).To(windowedNumbers)
}

func shapeSlidingCat(b *stream.Builder) {
	slidingBy(b, 8*ms).Aggregate("agg", cat, eachWindow()...).To(windowedText)
}

func shapeSlidingClose(b *stream.Builder) {
	slidingBy(b, 5*ms).Count("counts", stream.Retain(longer)).Final().To(windowedNumbers)
}

func shapeSuppressSliding(b *stream.Builder) {
	slidingBy(b, 5*ms).Count("counts").Final().To(windowedNumbers)
}
