package stream_test

import "github.com/semelstream/semel/stream"

// The golden shapes that chain operators of several kinds.

func init() { shapes["join-then-window"] = shapeJoinThenWindow }

func shapeJoinThenWindow(b *stream.Builder) {
	b.Stream(l).JoinStream("j", b.Stream(r), stream.Within(5*ms, 5*ms), joined).
		GroupByKey().
		Windowed(stream.Tumbling(10*ms, 10*ms)).
		Count("n", eachWindow()...).
		To(windowedNumbers)
}
