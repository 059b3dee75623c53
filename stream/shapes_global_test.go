package stream_test

import (
	"strings"

	"github.com/semelstream/semel/stream"
)

// The golden shapes of joins with a global table.

func init() {
	shapes["gt-inner"] = shapeGtInner
	shapes["gt-left"] = shapeGtLeft
}

// beforeColon is the lookup key: what comes before the colon, if anything does.
func beforeColon(_, v string) (string, bool) {
	k, _, _ := strings.Cut(v, ":")
	return k, k != ""
}

func shapeGtInner(b *stream.Builder) {
	b.Stream(s).JoinGlobal(b.GlobalTable(topic("g"), "glob"), beforeColon, joined).To(out)
}

func shapeGtLeft(b *stream.Builder) {
	b.Stream(s).LeftJoinGlobal(b.GlobalTable(topic("g"), "glob"), beforeColon, joinedLeft).To(out)
}
