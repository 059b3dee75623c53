package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// kafkaStreams is the variant in Java.
const kafkaStreams = "Kafka Streams"

// peers are the operators that Kafka Streams has too, and the count.
func peers() []operator {
	all := []operator{{"count", 0, checkCounts, 0}}
	for _, o := range operators {
		if o.name != "dedup" {
			all = append(all, o)
		}
	}
	return all
}

// peers measures each topology in Semel and in Kafka Streams, in turn. The latter
// gets fewer records, of the same kind.
func (b *bench) peers(ctx context.Context) error {
	if b.kafkaStreams == "" {
		return errors.New("-kafka-streams is missing: the folder of its jars, which scripts/kafka-streams prints; make bench-peers does it all")
	}
	src, err := b.c.loadTimed(ctx, b.name("timed-100k"), b.records, b.valueSize)
	if err != nil {
		return err
	}
	fewer, err := b.c.loadTimed(ctx, b.name("timed-100k-fewer"), b.peerRecords, b.valueSize)
	if err != nil {
		return err
	}
	var all []*series
	for _, o := range peers() {
		if !b.wants(o.name) {
			continue
		}
		streams := variant{
			name: kafkaStreams, set: func(s *spec) { s.Kind, s.KafkaStreams = kindPeer, b.kafkaStreams }, more: o.more, src: fewer,
		}
		if o.name == "sessions" {
			streams.check = unchecked
		}
		w := workload{name: o.name, topology: o.name, check: o.check, variants: []variant{
			{name: eos.name, set: eos.set, more: o.more},
			streams,
		}}
		got, err := b.rounds(ctx, w, src)
		if err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
		all = append(all, got...)
	}
	if err := b.c.deleteTopics(ctx, src.topic, rowsOf(src.topic), fewer.topic, rowsOf(fewer.topic)); err != nil {
		return err
	}
	return b.write("peers", peerReport(all, b))
}

// unchecked is for sessions of Kafka Streams: the last counts of a key's sessions
// add up to more than its records for about one key in a thousand.
func unchecked(context.Context, *cluster, string, *source) error { return nil }

func peerReport(all []*series, b *bench) string {
	var t strings.Builder
	fmt.Fprintf(&t, "The same topologies in Semel and in Kafka Streams 4.4, exactly once, commit interval %v, one worker (one stream\n"+
		"thread), on the same broker, in turn: %d rounds. The topics are those of the operators' benchmark: %d partitions,\n"+
		"16-byte keys, %d of them, %d-byte values, %d records in a millisecond of record time; windows of %v, each %v where they\n"+
		"overlap, sessions with a gap of %v, joins within %v. Semel drains %d records, Kafka Streams, with its defaults, %d; each is\n"+
		"measured from a quarter of them until all are committed. Median [min..max]. Every output was checked but Kafka Streams' sessions.\n"+touchedText+"\n",
		b.commit, b.pairs, partitions, operatorKeys, b.valueSize, perMs, window, hop, gap, near, b.records, b.peerRecords)
	t.WriteString(peerTable(all).String())
	return t.String()
}

func peerTable(all []*series) *table {
	t := &table{left: 1}
	t.add("topology", "Semel per second", "Kafka Streams", "times as fast", "us CPU", "Kafka Streams", "part of its CPU", "peak RSS MB", "Kafka Streams")
	rss := func(s *series) string {
		return fmt.Sprintf("%.0f", s.median(func(r *result) float64 { return float64(r.PeakRSS) / 1e6 }))
	}
	for _, s := range all {
		if s.variant != eos.name {
			continue
		}
		k := find(all, s.workload, kafkaStreams)
		t.add(s.workload,
			spreadOf(s.rates()).format("%.0f"), spreadOf(k.rates()).format("%.0f"), spreadOf(ratios(s.rates(), k.rates())).format("%.1f"),
			fmt.Sprintf("%.3f", spreadOf(s.cpus()).Median), fmt.Sprintf("%.3f", spreadOf(k.cpus()).Median),
			fmt.Sprintf("%.3f", spreadOf(ratios(s.cpus(), k.cpus())).Median),
			rss(s), rss(k))
	}
	return t
}
