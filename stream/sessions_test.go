package stream

import (
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
)

var (
	sessionCounts = NewTopic("session-counts", SessionKey(codec.String), codec.Int64)
	sessionTexts  = NewTopic("session-texts", SessionKey(codec.String), codec.String)
)

// expectWindows is expect for windowed keys, as "key[start,end]=value@ms".
func expectWindows[V any](r *rig, topic Topic[Windowed[string], V], want ...string) {
	r.t.Helper()
	var got []string
	for _, rec := range received(r, topic) {
		got = append(got, windowText(rec))
	}
	if len(got) != len(want) {
		r.t.Errorf("%s got\n\t%q, want\n\t%q", topic.Name, got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			r.t.Errorf("%s got\n\t%q, want\n\t%q", topic.Name, got, want)
			return
		}
	}
}

func windowText[V any](rec Record[Windowed[string], V]) string {
	key := rec.Key.Key + "[" + number64(rec.Key.Start.UnixMilli()) + "," + number64(rec.Key.End.UnixMilli()) + "]"
	return text(Record[string, V]{Key: key, Value: rec.Value, Time: rec.Time, NoValue: rec.NoValue})
}

func countSessions(gap, grace time.Duration, opts ...WindowOption) func(*Builder) {
	return func(b *Builder) {
		b.Stream(texts).GroupByKey().Sessions(gap, grace).Count("n", opts...).To(sessionCounts)
	}
}

func TestWIN05SessionBridgeAndExactGap(t *testing.T) {
	r := newRig(t, countSessions(5000*ms, time.Minute, EmitEach()))
	send(r, texts, rec("k", "", 0), rec("k", "", 10000))
	expectWindows(r, sessionCounts, "k[0,0]=1@0", "k[10000,10000]=1@10000")
	send(r, texts, rec("k", "", 5000))
	expectWindows(r, sessionCounts, "k[0,0]=-@0", "k[10000,10000]=-@10000", "k[0,10000]=3@10000")
	send(r, texts, rec("k", "", 15001))
	expectWindows(r, sessionCounts, "k[15001,15001]=1@15001")

	r = newRig(t, countSessions(5000*ms, time.Minute, EmitEach()))
	send(r, texts, rec("k", "", 1000), rec("k", "", 6000), rec("k", "", 11001))
	expectWindows(r, sessionCounts,
		"k[1000,1000]=1@1000", "k[1000,1000]=-@1000", "k[1000,6000]=2@6000", "k[11001,11001]=1@11001")
}

// The final comes one step later than Kafka Streams' suppress sends it: at 18 a
// record at 18 would still belong to the session that ends at 10, but for its
// gap, and one at 10 would be taken.
func TestWIN13SessionFinalsComeOnceAndNothingFollowsThem(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Sessions(5*ms, 3*ms).Count("n").Final().To(sessionCounts)
	})
	send(r, texts, rec("k", "", 10), rec("z", "", 17), rec("z", "", 18))
	expectWindows(r, sessionCounts)
	send(r, texts, rec("k", "", 10)) // as late as can be
	send(r, texts, rec("z", "", 19))
	expectWindows(r, sessionCounts, "k[10,10]=2@10")
	r.dropped()
	send(r, texts, rec("k", "", 10), rec("k", "", 11))
	r.dropped("n: late")
	send(r, texts, rec("z", "", 40))
	expectWindows(r, sessionCounts, "k[11,11]=1@11", "z[17,19]=3@19")
}

func TestWIN14NullValueInSessions(t *testing.T) {
	r := newRig(t, countSessions(5*ms, 0, EmitEach()))
	send(r, texts, rec("k", "x", 10), del[string]("k", 11), unkeyed[string]("x", 12))
	expectWindows(r, sessionCounts, "k[10,10]=1@10")
	r.dropped("n: tombstone", "n: no key")
	send(r, texts, rec("k", "", 10)) // neither has moved time
	expectWindows(r, sessionCounts, "k[10,10]=2@10")
}

func TestSessionAtTheEdgeOfItsGraceIsJoinedWhole(t *testing.T) {
	r := newRig(t, countSessions(5*ms, 10*ms, EmitEach()))
	send(r, texts, rec("k", "", 10), rec("j", "", 25), rec("k", "", 10))
	expectWindows(r, sessionCounts, "k[10,10]=1@10", "j[25,25]=1@25", "k[10,10]=2@10")
	send(r, texts, rec("j", "", 26), rec("k", "", 10))
	r.dropped("n: late")
}

// What is closed stays as it is, however long its row is kept.
func TestClosedSessionIsNotJoinedWhileItsRowIsKept(t *testing.T) {
	r := newRig(t, countSessions(5*ms, 0, EmitEach(), Retain(time.Hour)))
	send(r, texts, rec("k", "", 10), rec("j", "", 16), rec("k", "", 12), rec("k", "", 11))
	expectWindows(r, sessionCounts, "k[10,10]=1@10", "j[16,16]=1@16", "k[12,12]=1@12", "k[12,12]=-@12", "k[11,12]=2@12")
}

func TestSessionsAreToldOncePerTransaction(t *testing.T) {
	r := newRig(t, countSessions(5*ms, 100*ms))
	send(r, texts, rec("k", "", 10), rec("k", "", 14), rec("k", "", 30))
	r.commit()
	expectWindows(r, sessionCounts, "k[10,14]=2@14", "k[30,30]=1@30")
	// 22 comes and is absorbed, which nobody hears of.
	send(r, texts, rec("k", "", 22), rec("k", "", 26), rec("k", "", 18))
	r.commit()
	expectWindows(r, sessionCounts, "k[30,30]=-@30", "k[10,14]=-@14", "k[10,30]=6@30")
}

func TestUpdateThatReturnsFalseDeletesTheSession(t *testing.T) {
	update := func(_, v, row string, ok bool) (string, bool) {
		if !ok {
			row = "new:"
		}
		return row + v, v != "-"
	}
	merge := func(_, a, b string) string { return a + "+" + b }
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Sessions(5*ms, 100*ms).Update("s", update, merge, EmitEach()).To(sessionTexts)
	})
	send(r, texts, rec("k", "a", 10), rec("k", "b", 15))
	expectWindows(r, sessionTexts, "k[10,10]=new:a@10", "k[10,10]=-@10", "k[10,15]=new:ab@15")
	send(r, texts, rec("k", "-", 16))
	expectWindows(r, sessionTexts, "k[10,15]=-@15", "k[10,16]=-@16")
	send(r, texts, rec("k", "c", 16), rec("k", "d", 22), rec("k", "e", 20))
	expectWindows(r, sessionTexts, "k[16,16]=new:c@16", "k[22,22]=new:d@22",
		"k[16,16]=-@16", "k[22,22]=-@22", "k[16,22]=new:c+new:de@22")
}

func TestSessionsThatAreAbsorbedPassTheirOldValuesOn(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey().Sessions(5*ms, 100*ms).Count("n", EmitEach()).
			GroupBy(func(w Windowed[string], n int64) (string, int64) { return w.Key, n }).
			Aggregate("sum", func(_ string, n, acc int64) int64 { return acc + n }, func(_ string, n, acc int64) int64 { return acc - n }).
			To(intOut)
	})
	send(r, texts, rec("k", "", 10), rec("k", "", 20), rec("k", "", 15), rec("k", "", 15), rec("k", "", 40))
	r.commit()
	expect(r, intOut, "k=5@40")
}
