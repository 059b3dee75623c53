// Package check reads topics raw and says what an application did wrong: what
// it lost, doubled or tore. It uses nothing of the application's own, not even
// the client's filter of aborted records.
package check

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// A Txn is a transaction as a log shows it. With transaction.version 2 each
// transaction of a producer has an epoch of its own.
type Txn struct {
	Producer int64
	Epoch    int16
}

// A Log is a partition, read to its end.
type Log struct {
	Topic     string
	Partition int32
	Committed []*kgo.Record // in order, records outside transactions among them
	Aborted   int           // records
	Open      int           // records of transactions that have not ended
	Ended     map[Txn]bool  // by marker: true is commit
	End       int64
}

// Read reads all partitions of a topic with everything that is in them and
// sorts the records by what the control records say of them.
func Read(ctx context.Context, brokers []string, topic string) ([]*Log, error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("ends of %s: %w", topic, err)
	}
	starts, err := kadm.NewClient(cl).ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("starts of %s: %w", topic, err)
	}
	logs := make([]*Log, len(ends[topic]))
	from := map[int32]kgo.Offset{}
	for p, e := range ends[topic] {
		logs[p] = &Log{Topic: topic, Partition: p, Ended: map[Txn]bool{}, End: e.Offset}
		if s := starts[topic][p]; s.Offset < e.Offset {
			from[p] = kgo.NewOffset().At(s.Offset)
		}
	}
	return logs, fill(ctx, brokers, topic, logs, from)
}

func fill(ctx context.Context, brokers []string, topic string, logs []*Log, from map[int32]kgo.Offset) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.FetchIsolationLevel(kgo.ReadUncommitted()), kgo.KeepControlRecords(),
		kgo.FetchMaxWait(100*time.Millisecond), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return err
	}
	defer cl.Close()
	open := map[int32]map[Txn][]*kgo.Record{}
	left := map[int32]bool{}
	for p := range from {
		left[p], open[p] = true, map[Txn][]*kgo.Record{}
	}
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return fmt.Errorf("reading %s: %w", topic, err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			if left[r.Partition] {
				logs[r.Partition].add(r, open[r.Partition])
			}
			if r.Offset+1 >= logs[r.Partition].End {
				delete(left, r.Partition)
			}
		})
	}
	for p, txns := range open {
		for _, recs := range txns {
			logs[p].Open += len(recs)
		}
	}
	return nil
}

// add puts a record where it belongs. Order within a partition is that of the
// records, so committed ones of overlapping transactions are merged again.
func (l *Log) add(r *kgo.Record, open map[Txn][]*kgo.Record) {
	switch {
	case r.Attrs.IsControl():
		l.end(r, open)
	case r.Attrs.IsTransactional():
		t := Txn{r.ProducerID, r.ProducerEpoch}
		open[t] = append(open[t], r)
	default:
		l.Committed = append(l.Committed, r)
	}
}

// end reads a marker: version, then type 0 for abort and 1 for commit. A
// marker ends the producer's transaction whatever its epoch: the coordinator
// may have raised it to abort.
func (l *Log) end(marker *kgo.Record, open map[Txn][]*kgo.Record) {
	if len(marker.Key) < 4 {
		return
	}
	commit := binary.BigEndian.Uint16(marker.Key[2:]) == 1
	for t, recs := range open {
		if t.Producer != marker.ProducerID {
			continue
		}
		l.Ended[t] = commit
		if commit {
			l.Committed = merge(l.Committed, recs)
		} else {
			l.Aborted += len(recs)
		}
		delete(open, t)
	}
}

// merge keeps offset order.
func merge(all, recs []*kgo.Record) []*kgo.Record {
	i := len(all)
	for i > 0 && all[i-1].Offset > recs[0].Offset {
		i--
	}
	tail := append([]*kgo.Record(nil), all[i:]...)
	all = all[:i]
	for len(tail) > 0 || len(recs) > 0 {
		if len(recs) == 0 || len(tail) > 0 && tail[0].Offset < recs[0].Offset {
			all, tail = append(all, tail[0]), tail[1:]
		} else {
			all, recs = append(all, recs[0]), recs[1:]
		}
	}
	return all
}
