package changelog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
)

// A fakeLog is one partition, written as words: "a=1" is a row, "a-" its
// tombstone, "commit" and "abort" are the markers that end what is before them,
// "_" is an offset that compaction took away. What no marker follows is in an
// open transaction.
type fakeLog struct {
	words []string
	start int64 // of what DeleteRecords left
}

func parse(words string) *fakeLog { return &fakeLog{words: strings.Fields(words)} }

// fate is how the word at offset i ended: "commit", "abort" or "" if it is open.
func (l *fakeLog) fate(i int) string {
	for _, w := range l.words[i:] {
		if w == "commit" || w == "abort" {
			return w
		}
	}
	return ""
}

func (l *fakeLog) end() int64 { return int64(len(l.words)) }

// stable is the last stable offset.
func (l *fakeLog) stable() int64 {
	n := len(l.words)
	for n > 0 && l.fate(n-1) == "" {
		n--
	}
	return int64(n)
}

// read is what a client delivers: committed records, and a position that only a
// record or a marker moves.
func (l *fakeLog) read(tp seam.TP, at int64, limit int) (recs []*kgo.Record, next int64) {
	next = at
	for i := at; i < l.stable() && len(recs) < limit; i++ {
		switch w := l.words[i]; {
		case w == "_":
		case w == "commit" || w == "abort":
			next = i + 1
		case l.fate(int(i)) == "commit":
			recs = append(recs, word(tp, i, w))
			next = i + 1
		}
	}
	return recs, next
}

// word is the record of a word; its time is its offset.
func word(tp seam.TP, offset int64, w string) *kgo.Record {
	r := &kgo.Record{Topic: tp.Topic, Partition: tp.Partition, Offset: offset, Timestamp: time.UnixMilli(offset)}
	if key, value, ok := strings.Cut(w, "="); ok {
		r.Key, r.Value = []byte(key), []byte(value)
	} else {
		r.Key = []byte(strings.TrimSuffix(w, "-"))
	}
	return r
}

// fold is what the offsets from up to end come to.
func (l *fakeLog) fold(from, end int64) rows {
	m := rows{}
	for i := from; i < end; i++ {
		if w := l.words[i]; w != "_" && w != "commit" && w != "abort" && l.fate(int(i)) == "commit" {
			m.put(word(tp0, i, w))
		}
	}
	return m
}

// A fakeSource reads fakeLogs as a Source should.
type fakeSource struct {
	limit int // records in a batch at most; 0 is any
	waits chan struct{}
	err   error // of the next Poll

	mu      sync.Mutex
	logs    map[seam.TP]*fakeLog
	at      map[seam.TP]int64
	dead    map[seam.TP]bool // was out of range: nothing more until it is assigned
	changed chan struct{}
	closed  bool
	mangle  func([]changelog.Batch) []changelog.Batch
}

var _ changelog.Source = (*fakeSource)(nil)

func newSource() *fakeSource {
	return &fakeSource{
		waits: make(chan struct{}, 1), logs: map[seam.TP]*fakeLog{},
		at: map[seam.TP]int64{}, dead: map[seam.TP]bool{}, changed: make(chan struct{}),
	}
}

// change does something to the logs and wakes who waits for it.
func (s *fakeSource) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *fakeSource) Assign(tp seam.TP, at int64) {
	s.at[tp] = at
	delete(s.dead, tp)
}

func (s *fakeSource) Unassign(tps ...seam.TP) {
	for _, tp := range tps {
		delete(s.at, tp)
		delete(s.dead, tp)
	}
}

func (s *fakeSource) Poll(ctx context.Context, max int, wait time.Duration) ([]changelog.Batch, error) {
	if err := s.err; err != nil {
		s.err = nil
		return nil, err
	}
	s.mu.Lock()
	changed := s.changed
	out, err := s.fetch(max)
	s.mu.Unlock()
	if out != nil || err != nil || wait == 0 {
		return out, err
	}
	select {
	case s.waits <- struct{}{}: // a test may wait for this
	default:
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-changed:
		return nil, nil
	case <-time.After(wait):
		return nil, nil
	}
}

func (s *fakeSource) fetch(max int) (out []changelog.Batch, err error) {
	if s.limit > 0 {
		max = s.limit
	}
	for _, tp := range seam.SortedTPs(s.at) {
		l, at := s.logs[tp], s.at[tp]
		if s.dead[tp] {
			continue
		}
		if at < l.start || at > l.end() {
			s.dead[tp] = true
			return nil, &seam.PartitionError{TP: tp, Err: kerr.OffsetOutOfRange}
		}
		if recs, next := l.read(tp, at, max); next > at {
			out = append(out, changelog.Batch{TP: tp, Records: recs, Next: next, Stable: l.stable()})
			s.at[tp] = next
		}
	}
	if s.mangle != nil {
		out = s.mangle(out)
	}
	return out, nil
}

func (s *fakeSource) Wake() { s.change(func() {}) }

func (s *fakeSource) Close() { s.closed = true }

// rows are keys with values and times.
type rows map[string]row

type row struct {
	value string
	ms    int64
}

func (m rows) put(r *kgo.Record) {
	if r.Value == nil {
		delete(m, string(r.Key))
		return
	}
	m[string(r.Key)] = row{string(r.Value), r.Timestamp.UnixMilli()}
}

// String is "a=1@0 b=2@1".
func (m rows) String() string {
	var out []string
	for k, r := range m {
		out = append(out, fmt.Sprintf("%s=%s@%d", k, r.value, r.ms))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
