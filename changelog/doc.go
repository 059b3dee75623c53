// Package changelog keeps a store's history in a compacted topic and rebuilds
// the store from it. It needs no topology and no particular store.
//
// The format is Kafka Streams': plain key and value bytes, the record's
// timestamp is the row's, a null value deletes, and the partition is the
// task's, set explicitly and not by hash.
//
// # Writing
//
// A [Writer] puts changes into the transaction that also commits the input's
// offsets, one record per key with its last value. Once the transaction is
// known to be committed, [Writer.Committed] is the position that the store has
// reached; rows and position are stored together from then on.
//
// # Restoring
//
// A [Restorer] reads from a [Source] what a [Target] lacks. [Reader] is a Source
// on Kafka, and [Restore] does it all:
//
//	r, err := changelog.NewReader(kgo.SeedBrokers(brokers...))
//	...
//	err = changelog.Restore(ctx, r, map[changelog.TP]changelog.Target{{Topic: topic}: rows})
//
// Three rules make a restore exact:
//
//  1. Its end is the high watermark, taken after the committed input offsets
//     were fetched, and it has come there when its position has: at the end
//     there may be no record at all, only markers and what was aborted.
//  2. It begins at the target's position, and if the topic has lost that, at
//     the topic's start and in an empty target: tombstones may be gone, so that
//     whatever was there before might never be deleted.
//  3. Rows and position go into the target together, so that a crash in
//     between costs nothing.
//
// # What is not promised
//
// A topic that was deleted and made again under the same name is noticed only
// if it is shorter than the target's position. A target that was away for
// longer than the topic's delete.retention.ms (a day by default) may have missed
// tombstones: [Job.Anew] is for whoever knows that.
package changelog
