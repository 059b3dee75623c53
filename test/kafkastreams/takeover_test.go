package kafkastreams_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream"
)

// A migration is an application that moves from Kafka Streams to Semel and back
// while records come in; what it counts is compared with a recount.
type migration struct {
	t       *testing.T
	ctx     context.Context
	app     string
	brokers []string
	topics  topics
	client  *kgo.Client // writes lines
	reader  *kgo.Client // reads both results
	rnd     *rand.Rand
	clock   time.Time
	want    map[string]int64 // the recount: words, and words by second
	got     map[string]int64
	closed  map[string]bool // seconds that are over
	finals  map[string]map[string]int64
	back    bool // Kafka Streams is back, whose suppress has a buffer of its own
}

func newMigration(t *testing.T) *migration {
	addr := os.Getenv("KAFKA_ADDR")
	if addr == "" {
		t.Skip("KAFKA_ADDR is not set: make test-takeover starts a Kafka and sets it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &migration{
		t: t, ctx: ctx, app: fmt.Sprintf("wordcount-%08x", seed>>32), brokers: strings.Split(addr, ","),
		rnd: rand.New(rand.NewPCG(seed, 0)), clock: time.Now().Add(-30 * time.Minute).Truncate(time.Second),
		want: map[string]int64{}, got: map[string]int64{}, closed: map[string]bool{}, finals: map[string]map[string]int64{},
	}
	m.topics = topicsOf(m.app)
	m.client = m.connect(kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	m.reader = m.connect(kgo.ConsumeTopics(m.topics.results()...), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for _, name := range []string{m.topics.suppressed.Name, m.topics.closed.Name} {
		m.finals[name] = map[string]int64{}
	}
	adm := kadm.NewClient(m.client)
	if _, err := adm.CreateTopics(ctx, 2, 1, nil, append(m.topics.results(), m.topics.lines.Name)...); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *migration) connect(opts ...kgo.Opt) *kgo.Client {
	cl, err := kgo.NewClient(append(opts, kgo.SeedBrokers(m.brokers...), kgo.UnknownTopicRetries(-1))...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(cl.Close)
	return cl
}

// feed writes lines of words, about 250 for a second of record time. The time
// jumps before, so that by this all seconds of former feeds are over. All of
// one feed is in the grace period, whatever order it comes in.
func (m *migration) feed(lines int) {
	m.t.Helper()
	m.clock = m.clock.Add(grace + 2*time.Second)
	for key := range m.want {
		if strings.Contains(key, "@") {
			m.closed[key] = true
		}
	}
	m.write(lines)
}

func (m *migration) write(lines int) {
	m.t.Helper()
	var recs []*kgo.Record
	for range lines {
		m.clock = m.clock.Add(time.Duration(m.rnd.IntN(8)) * time.Millisecond)
		var words []string
		for range 1 + m.rnd.IntN(6) {
			word := fmt.Sprintf("w%d", m.rnd.IntN(40))
			words = append(words, word)
			m.want[word]++
			m.want[secondKey(word, m.clock.Truncate(time.Second))]++
		}
		recs = append(recs, &kgo.Record{Topic: m.topics.lines.Name, Timestamp: m.clock, Value: []byte(strings.Join(words, " "))})
	}
	if err := m.client.ProduceSync(m.ctx, recs...).FirstErr(); err != nil {
		m.t.Fatal(err)
	}
}

// await reads results until enough says so. Kafka Streams looks once a second
// whether windows have closed, when a record comes, so that there are some.
func (m *migration) await(what string, enough func() bool) {
	m.t.Helper()
	start, wrote := time.Now(), time.Now()
	for !enough() {
		ctx, stop := context.WithTimeout(m.ctx, time.Second)
		fs := m.reader.PollFetches(ctx)
		stop()
		fs.EachRecord(m.note)
		if time.Since(start) > 2*time.Minute {
			m.t.Fatalf("%s: not in %v: %s", what, time.Since(start), m.differences())
		}
		if time.Since(wrote) > 4*time.Second && maps.Equal(m.got, m.want) {
			m.write(40)
			wrote = time.Now()
		}
	}
	m.t.Logf("%s: after %v", what, time.Since(start))
}

// note checks a result. A count never goes back and never passes the recount: a
// record that was counted twice would make it. A final comes once and is right.
func (m *migration) note(r *kgo.Record) {
	m.t.Helper()
	key, n := string(r.Key), int64(binary.BigEndian.Uint64(r.Value))
	finals := m.finals[r.Topic]
	switch {
	case finals == nil:
		if n <= m.got[key] || n > m.want[key] {
			m.t.Fatalf("%s of %s/%d at %d goes from %d to %d, the recount is %d", key, r.Topic, r.Partition, r.Offset, m.got[key], n, m.want[key])
		}
		m.got[key] = n
	case m.back && r.Topic == m.topics.suppressed.Name:
	case finals[key] != 0:
		m.t.Fatalf("a second final of %s in %s/%d at %d", key, r.Topic, r.Partition, r.Offset)
	case !m.closed[key] || n != m.want[key]:
		m.t.Fatalf("the final of %s in %s/%d at %d is %d, the recount is %d, over: %v", key, r.Topic, r.Partition, r.Offset, n, m.want[key], m.closed[key])
	default:
		finals[key] = n
	}
}

func (m *migration) awaitAll(what string) {
	m.t.Helper()
	m.await(what, func() bool {
		return maps.Equal(m.got, m.want) && len(m.finals[m.topics.closed.Name]) == len(m.closed) &&
			(m.back || len(m.finals[m.topics.suppressed.Name]) == len(m.closed))
	})
}

func (m *migration) differences() string {
	var s []string
	for key, want := range m.want {
		if got := m.got[key]; got != want && len(s) < 10 {
			s = append(s, fmt.Sprintf("%s is %d, not %d", key, got, want))
		}
	}
	for topic, finals := range m.finals {
		s = append(s, fmt.Sprintf("%d of %d finals in %s", len(finals), len(m.closed), topic))
	}
	return strings.Join(s, ", ")
}

func (m *migration) topology() *stream.Topology {
	t, err := stream.Build(wordCount(m.topics))
	if err != nil {
		m.t.Fatal(err)
	}
	return t
}

func (m *migration) config() stream.Config {
	return stream.Config{AppID: m.app, Brokers: m.brokers, StateDir: m.t.TempDir()}
}

// semel runs the topology until the function it returns is called.
func (m *migration) semel() (leave func()) {
	m.t.Helper()
	a, err := stream.New(m.topology(), m.config())
	if err != nil {
		m.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.Run(m.ctx) }()
	return func() {
		m.t.Helper()
		if err := a.Close(m.ctx, stream.Leave); err != nil {
			m.t.Fatal(err)
		}
		if err := <-ended; err != nil {
			m.t.Fatal(err)
		}
	}
}

// Results are those of a plain recount at every step, whoever counts.
func TestAKafkaStreamsApplicationIsTakenOverAndGoesBack(t *testing.T) {
	m := newMigration(t)
	classes, dir := javaClasses(t), t.TempDir()

	m.feed(400)
	java := startJava(t, classes, m.brokers[0], m.app, dir)
	m.awaitAll("Kafka Streams has counted")

	err := stream.TakeOver(m.ctx, m.topology(), m.config(), stream.TakeOverOptions{Dead: true})
	if !errors.Is(err, stream.ErrRunning) {
		t.Fatalf("taking over what runs: got %v, want ErrRunning", err)
	}
	t.Log(err)
	m.feed(200)
	m.awaitAll("it goes on after that")

	m.feed(4000)
	seen := sum(m.got)
	m.await("it counts", func() bool { return sum(m.got) > seen })
	java.kill()
	if maps.Equal(m.got, m.want) {
		t.Log("it had counted all when it was killed")
	}

	start := time.Now()
	if err := stream.TakeOver(m.ctx, m.topology(), m.config(), stream.TakeOverOptions{Dead: true}); err != nil {
		t.Fatal(err)
	}
	t.Logf("taken over in %v", time.Since(start))
	leave := m.semel()
	m.awaitAll("Semel has counted the rest")
	m.feed(1000)
	m.awaitAll("and more")
	leave()

	m.back = true
	if m.rnd.IntN(2) == 0 {
		t.Log("without its state directory")
		dir = t.TempDir()
	}
	java = startJava(t, classes, m.brokers[0], m.app, dir)
	m.feed(500)
	m.awaitAll("Kafka Streams goes on")
	java.close()
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}
