package stream_test

import (
	"strings"

	"github.com/semelstream/semel/stream"
)

// The golden shapes of joins of tables and of cogroups.

func init() {
	shapes["cogroup-three"] = shapeCogroupThree
	shapes["cogroup-tumbling"] = shapeCogroupTumbling
	shapes["cogroup-session"] = shapeCogroupSession
	shapes["cogroup-sliding-close"] = shapeCogroupSlidingClose // there is no golden trace of it
	shapes["fk-inner"] = shapeFkInner
	shapes["fk-left"] = shapeFkLeft
	shapes["fk-inner-from-key"] = shapeFkInnerFromKey
	shapes["tt-inner"] = shapeTtInner
	shapes["tt-left"] = shapeTtLeft
	shapes["tt-outer"] = shapeTtOuter
	shapes["tt-left-group"] = shapeTtLeftGroup
}

func keepCat(_, v, row string, _ bool) (string, bool) { return cat12(row, v), true }

func keepCatUpper(_, v, row string, _ bool) (string, bool) {
	return cat12(row, strings.ToUpper(v)), true
}

func remove(_, _, _ string, _ bool) (string, bool) { return "", false }

func shapeCogroupThree(b *stream.Builder) {
	b.Stream(topic("p")).GroupByKey().Cogroup(keepCat).
		With(b.Stream(topic("q")).GroupByKey(), keepCatUpper).
		With(b.Stream(topic("z")).GroupByKey(), remove).
		ToTable("agg", each...).
		To(out)
}

func shapeCogroupTumbling(b *stream.Builder) {
	b.Stream(topic("p")).GroupByKey().Cogroup(keepCat).
		With(b.Stream(topic("q")).GroupByKey(), keepCatUpper).
		ToWindows("agg", stream.Tumbling(10*ms, 5*ms), eachWindow()...).
		To(windowedText)
}

func shapeCogroupSlidingClose(b *stream.Builder) {
	b.Stream(topic("p")).GroupByKey().Cogroup(keepCat).
		With(b.Stream(topic("q")).GroupByKey(), keepCatUpper).
		ToWindows("agg", stream.Sliding(10*ms, 5*ms)).
		Final().
		To(windowedText)
}

// goOn is f for sessions as the reference has them: it merges the row of a
// session into the initial value before it adds to it.
func goOn(f func(k, v, row string, ok bool) (string, bool)) func(k, v, row string, ok bool) (string, bool) {
	return func(k, v, row string, ok bool) (string, bool) {
		if ok {
			row = mergeCat(k, "", row)
		}
		return f(k, v, row, ok)
	}
}

func shapeCogroupSession(b *stream.Builder) {
	b.Stream(topic("p")).GroupByKey().Cogroup(goOn(keepCat)).
		With(b.Stream(topic("q")).GroupByKey(), goOn(keepCatUpper)).
		ToSessions("agg", 5*ms, 10*ms, mergeCat, eachWindow()...).
		To(sessionText)
}

func shapeTtInner(b *stream.Builder) {
	b.Table(l, "lt").Join(b.Table(r, "rt"), joined).Stored("joined").To(out)
}

func shapeTtLeft(b *stream.Builder) {
	b.Table(l, "lt").LeftJoin(b.Table(r, "rt"), joinedLeft).Stored("joined").To(out)
}

func shapeTtOuter(b *stream.Builder) {
	b.Table(l, "lt").OuterJoin(b.Table(r, "rt"), joinedOuter).Stored("joined").To(out)
}

func shapeTtLeftGroup(b *stream.Builder) {
	b.Table(l, "lt").
		LeftJoin(b.Table(r, "rt"), func(l, r string, ok bool) string { return l + ":" + orNull(r, ok) }).
		GroupBy(func(k, v string) (string, string) { return v, k }).
		Count("counts", each...).
		To(numOut)
}

func foreign(_, v string) (string, bool) { k, _, _ := strings.Cut(v, ":"); return k, k != "" }

func shapeFkInner(b *stream.Builder) {
	b.Table(l, "lt").JoinOn("fk", b.Table(r, "rt"), foreign, joined).Stored("joined").To(out)
}

func shapeFkLeft(b *stream.Builder) {
	b.Table(l, "lt").LeftJoinOn("fk", b.Table(r, "rt"), foreign, joinedLeft).Stored("joined").To(out)
}

func shapeFkInnerFromKey(b *stream.Builder) {
	firstOfBoth := func(k, v string) (string, bool) { return k[:1] + v, true }
	b.Table(l, "lt").JoinOn("fk", b.Table(r, "rt"), firstOfBoth, joined).Stored("joined").To(out)
}
