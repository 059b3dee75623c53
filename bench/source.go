package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// partitions is how many each topic has.
const partitions = 4

// A source is a loaded topic and what is known of it: what an output is
// compared with.
type source struct {
	topic   string
	unit    string // of what the rates count
	units   int64  // of them in the topic
	records int64  // that a topology processes for them, internal topics included
	sum     uint64 // over all keys and values
	counts  map[string]int64
	finals  map[string]int64 // by key: records in hopping windows that close, once for each
	pairs   int64            // that a join of its even and odd records makes
}

// hashSeed is the same for loading and checking, which one process does.
var hashSeed = maphash.MakeSeed()

// digest of a record; sums of digests do not depend on order.
func digest(r *kgo.Record) uint64 {
	return maphash.Bytes(hashSeed, r.Key)*31 + maphash.Bytes(hashSeed, r.Value)
}

// seed is of the keys, the same in each run.
const seed = 7

// key16 is the i-th key: 16 bytes, spread.
func key16(i uint64) []byte {
	x := i * 0x9E3779B97F4A7C15
	k := binary.BigEndian.AppendUint64(make([]byte, 0, 16), x^x>>29)
	return binary.BigEndian.AppendUint64(k, i)
}

// value is size bytes that begin with a number.
func value(n uint64, size int) []byte {
	v := binary.BigEndian.AppendUint64(make([]byte, 0, size), n)
	for i := len(v); i < size; i++ {
		v = append(v, 'a'+byte(i%26))
	}
	return v
}

// keys says which key comes next.
func uniform(keys uint64) func() uint64 {
	r := rand.New(rand.NewPCG(seed, seed))
	return func() uint64 { return r.Uint64N(keys) }
}

func zipf(keys uint64) func() uint64 {
	z := rand.NewZipf(rand.New(rand.NewPCG(seed, seed)), 1.1, 1, keys-1)
	return z.Uint64
}

func inTurn(keys uint64) func() uint64 {
	n := keys - 1
	return func() uint64 { n = (n + 1) % keys; return n }
}

// loader fills a topic; records with keys go where Kafka's own clients would
// put them.
type loader struct {
	cl     *kgo.Client
	src    *source
	failed atomic.Pointer[error]
}

func (c *cluster) newLoader(ctx context.Context, topic, unit string) (*loader, error) {
	if err := c.makeTopic(ctx, topic); err != nil {
		return nil, err
	}
	return c.fill(topic, unit)
}

// fill is a loader of a topic that is there.
func (c *cluster) fill(topic, unit string) (*loader, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.brokers...), kgo.DisableClientMetrics(),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return nil, err
	}
	return &loader{cl: cl, src: &source{topic: topic, unit: unit, counts: map[string]int64{}, finals: map[string]int64{}}}, nil
}

func (l *loader) send(ctx context.Context, r *kgo.Record) {
	r.Topic = l.src.topic
	l.src.units++
	l.src.sum += digest(r)
	l.cl.Produce(ctx, r, l.done)
}

func (l *loader) done(_ *kgo.Record, err error) {
	if err != nil {
		first := err // or err itself would be allocated each time
		l.failed.CompareAndSwap(nil, &first)
	}
}

func (l *loader) close(ctx context.Context) (*source, error) {
	defer l.cl.Close()
	if err := l.cl.Flush(ctx); err != nil {
		return nil, fmt.Errorf("loading %s: %w", l.src.topic, err)
	}
	if err := l.failed.Load(); err != nil {
		return nil, fmt.Errorf("loading %s: %w", l.src.topic, *err)
	}
	return l.src, nil
}

// loadKeys makes a topic of n records with 16-byte keys.
func (c *cluster) loadKeys(ctx context.Context, topic string, n int64, size int, next func() uint64) (*source, error) {
	l, err := c.newLoader(ctx, topic, "records")
	if err != nil {
		return nil, err
	}
	for i := range n {
		k := key16(next())
		l.src.counts[string(k)]++
		l.send(ctx, &kgo.Record{Key: k, Value: value(uint64(i), size)})
	}
	l.src.records = n
	return l.close(ctx)
}

// loadText makes a topic of n lines, without keys, from the text over and over.
func (c *cluster) loadText(ctx context.Context, topic string, n int64, lines []string) (*source, error) {
	l, err := c.newLoader(ctx, topic, "lines")
	if err != nil {
		return nil, err
	}
	l.src.records = n
	for i := range n {
		line := lines[i%int64(len(lines))]
		for _, w := range strings.Fields(line) {
			l.src.counts[w]++
			l.src.records++ // it passes the repartition topic
		}
		l.send(ctx, &kgo.Record{Value: []byte(line)})
	}
	return l.close(ctx)
}

// goSource is up to n lines of Go's standard library that are not empty.
func goSource(ctx context.Context, n int64) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("finding Go's source, the text whose words are counted: %w", err)
	}
	var lines []string
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(out)), "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		if int64(len(lines)) >= n {
			return fs.SkipAll
		}
		lines, err = appendLines(lines, path)
		return err
	})
	if err == nil && len(lines) == 0 {
		err = fmt.Errorf("there is no Go file below GOROOT/src")
	}
	return lines, err
}

func appendLines(lines []string, path string) ([]string, error) {
	text, err := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines, err
}
