package stream_test

import (
	"maps"

	"github.com/semelstream/semel/stream"
)

// The golden shapes of versioned tables and of joins with them.

func init() {
	maps.Copy(shapes, map[string]func(*stream.Builder){
		"versioned-table":     shapeVersionedTable,
		"versioned-group-sum": shapeVersionedGroupSum,
		"tt-inner-versioned":  shapeTtInnerVersioned,
		"st-inner-versioned":  shapeStInnerVersioned,
		"st-left-versioned":   shapeStLeftVersioned,
		"st-inner-buffered":   shapeStInnerBuffered,
		"st-left-buffered":    shapeStLeftBuffered,
	})
}

func shapeVersionedTable(b *stream.Builder) {
	t := b.Table(in, "t", stream.Versioned(40*ms))
	t.To(out)
	t.Filter(long).To(topic("kept"))
}

func shapeVersionedGroupSum(b *stream.Builder) {
	b.Table(in, "t", stream.Versioned(40*ms)).
		Filter(inGroup).GroupBy(byGroup).Aggregate("sums", add, sub, each...).To(numOut)
}

func shapeTtInnerVersioned(b *stream.Builder) {
	left := b.Table(l, "lt", stream.Versioned(40*ms))
	right := b.Table(r, "rt", stream.Versioned(40*ms))
	left.Join(right, joined).To(out)
}

func shapeStInnerVersioned(b *stream.Builder) {
	b.Stream(s).Join(b.Table(t, "tab", stream.Versioned(40*ms)), joined).To(out)
}

func shapeStLeftVersioned(b *stream.Builder) {
	b.Stream(s).LeftJoin(b.Table(t, "tab", stream.Versioned(40*ms)), joinedLeft).To(out)
}

func shapeStInnerBuffered(b *stream.Builder) {
	tab := b.Table(t, "tab", stream.Versioned(60*ms))
	b.Stream(s).Join(tab, joined, stream.Wait("buf", 10*ms)).To(out)
}

func shapeStLeftBuffered(b *stream.Builder) {
	tab := b.Table(t, "tab", stream.Versioned(60*ms))
	b.Stream(s).LeftJoin(tab, joinedLeft, stream.Wait("buf", 10*ms)).To(out)
}
