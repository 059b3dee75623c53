package stream_test

import "github.com/semelstream/semel/stream"

func init() {
	shapes["suppress-limit"] = func(b *stream.Builder) {
		b.Stream(in).GroupByKey().Count("counts", each...).Suppress("held", 10*ms).To(numOut)
	}
	shapes["suppress-table-limit"] = func(b *stream.Builder) {
		b.Table(in, "t").Suppress("held", 10*ms).To(out)
	}
	shapes["suppress-early"] = func(b *stream.Builder) {
		b.Stream(in).GroupByKey().Count("counts", each...).Suppress("held", 20*ms, stream.MaxKeys(2)).To(numOut)
	}
}
