package txn

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
)

// timeout bounds the client's own retries and is the default transaction
// timeout. A broker that dies may legally cost its session (9 s), an election
// and a coordinator's load; 18 s were seen. Fencing by [Producer.Init] makes
// a long transaction timeout cheap.
const timeout = 40 * time.Second

// ClientOptions are what every client of an exactly-once application needs,
// the group's membership client too: they make it survive brokers that die,
// freeze or move, and they cap the versions of the requests that this package
// makes by hand. Give them first, so that later options can override them;
// overriding kgo.MaxVersions breaks [Committed], [CommitOffsets] and
// [Producer.Prepare].
func ClientOptions() []kgo.Opt {
	return []kgo.Opt{
		// A leader's move is seen after 50 ms, not 5 s. It is also the delay of
		// a Produce that met CONCURRENT_TRANSACTIONS.
		kgo.MetadataMinAge(50 * time.Millisecond),
		// New leaders are found while a request to a frozen broker still hangs.
		kgo.MetadataMaxAge(2 * time.Second),
		// Short first steps: NOT_ENOUGH_REPLICAS and lost EndTxn connections
		// cost one of them. It helps only together with MetadataMinAge.
		kgo.RetryBackoffFn(backoff),
		// At this backoff 20 retries are over in 0.9 s: let the time decide.
		kgo.RequestRetries(100_000),
		kgo.RetryTimeout(timeout),
		// A frozen broker accepts connections and answers nothing.
		kgo.RequestTimeoutOverhead(2 * time.Second),
		kgo.ProduceRequestTimeout(5 * time.Second),
		kgo.DialTimeout(time.Second),
		// The first answer after EndTxn is often "the markers are not written
		// yet"; the next comes after one or two milliseconds.
		kgo.ConcurrentTransactionsBackoff(5 * time.Millisecond),
		// A topic that was just created is unknown to some brokers for a while.
		kgo.UnknownTopicRetries(100),
		kgo.DisableClientMetrics(),
		kgo.MaxVersions(versions()),
	}
}

// versions caps the requests that are made by hand.
func versions() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(keyTxnOffsetCommit, 5) // v6 wants topic ids
	v.SetMaxKeyVersion(keyOffsetFetch, 9)     // v10 wants topic ids
	v.SetMaxKeyVersion(keyOffsetCommit, 9)    // v10 wants topic ids
	return v
}

const (
	keyOffsetCommit    = 8
	keyOffsetFetch     = 9
	keyTxnOffsetCommit = 28
)

// backoff is 3 ms, doubling to 50 ms.
func backoff(fails int) time.Duration {
	return min(3*time.Millisecond<<min(max(fails-1, 0), 5), 50*time.Millisecond)
}
