package stream_test

import (
	"maps"

	"github.com/semelstream/semel/stream"
)

// streamJoins are joins of l and r, as the definition of the join has them.
var streamJoins = map[string]func(*stream.Builder){
	"ss-inner":           ssInner(stream.Within(10*ms, 0)),
	"ss-inner-grace":     ssInner(stream.Within(10*ms, 5*ms)),
	"ss-inner-asym":      ssInner(stream.Between(-3*ms, 12*ms, 4*ms)),
	"ss-inner-forward":   ssInner(stream.Between(0, 10*ms, 50*ms)),
	"ss-inner-delayed":   ssInner(stream.Between(2*ms, 10*ms, 5*ms)),
	"ss-inner-zero":      ssInner(stream.Within(0, 5*ms)),
	"ss-inner-doc":       ssInner(stream.Within(15*ms, 5*ms)),
	"ss-left":            ssLeft(stream.Within(10*ms, 0)),
	"ss-left-grace":      ssLeft(stream.Within(10*ms, 5*ms)),
	"ss-left-asym":       ssLeft(stream.Between(-3*ms, 12*ms, 4*ms)),
	"ss-left-wide-grace": ssLeft(stream.Within(10*ms, 100*ms)),
	"ss-left-doc":        ssLeft(stream.Within(15*ms, 5*ms)),
	"ss-outer":           ssOuter(stream.Within(10*ms, 0)),
	"ss-outer-grace":     ssOuter(stream.Within(10*ms, 5*ms)),
	"ss-outer-asym":      ssOuter(stream.Between(-3*ms, 12*ms, 4*ms)),
	"ss-outer-doc":       ssOuter(stream.Within(15*ms, 5*ms)),
}

func init() {
	maps.Copy(shapes, streamJoins)
	shapes["ss-self"] = shapeSsSelf
	shapes["ss-inner-rekeyed"] = shapeSsInnerRekeyed
	shapes["headers-joins"] = shapeHeadersJoins
}

func ssInner(w stream.JoinWindow) func(*stream.Builder) {
	return func(b *stream.Builder) { b.Stream(l).JoinStream("j", b.Stream(r), w, joined).To(out) }
}

func ssLeft(w stream.JoinWindow) func(*stream.Builder) {
	return func(b *stream.Builder) { b.Stream(l).LeftJoinStream("j", b.Stream(r), w, joinedLeft).To(out) }
}

func ssOuter(w stream.JoinWindow) func(*stream.Builder) {
	return func(b *stream.Builder) { b.Stream(l).OuterJoinStream("j", b.Stream(r), w, joinedOuter).To(out) }
}

func shapeSsSelf(b *stream.Builder) {
	in := b.Stream(in)
	in.JoinStream("j", in, stream.Within(10*ms, 5*ms), joined).To(out)
}

func shapeSsInnerRekeyed(b *stream.Builder) {
	first := func(_, v string) string { return v[:1] }
	b.Stream(l).SelectKey(first).
		JoinStream("j", b.Stream(r).SelectKey(first), stream.Within(10*ms, 5*ms), joined).
		To(out)
}

func shapeHeadersJoins(b *stream.Builder) {
	s := b.Stream(s)
	s.LeftJoin(b.Table(t, "tab"), joinedLeft).To(topic("st"))
	s.LeftJoinStream("j", b.Stream(r), stream.Within(10*ms, 5*ms), joinedLeft).To(topic("ss"))
}
