// Package txn reads, processes and writes Kafka records in one transaction.
// It needs no topology: a program that only moves records can stop here.
//
// There are two layers. A [Session] is a whole consume-process-produce loop:
//
//	s, err := txn.Open(ctx, txn.Config{Group: "copy", TransactionalID: "copy-1", Brokers: brokers, Topics: []string{"in"}})
//	...
//	err = s.Run(ctx, func(tx *txn.Tx, recs []*kgo.Record) error {
//		for _, r := range recs {
//			tx.Produce(&kgo.Record{Topic: "out", Key: r.Key, Value: r.Value}, nil)
//		}
//		return nil
//	})
//
// Below it are the steps of the protocol, for whoever has a loop already: a
// [Producer] with one transaction at a time, [Committed] and [CommitOffsets]
// for the input's offsets, [CheckCluster], and [Fence] and [FenceStrangers]
// for what dead processes left open.
//
// One rule holds for all of it. No error is repaired in place: the Producer is
// closed, a new one with the same transactional id is opened and initialized,
// which ends whatever the former one had open, and the stable committed
// offsets say what has happened and what is to be done again. [Judge] says
// what else an error asks for.
package txn
