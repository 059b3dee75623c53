// Package state holds the stores that processors read and write. A store
// changes in transactions, and disk learns of a change only when Kafka has
// committed it.
//
// A [DB] is the stores of one task. Under it is an [Engine], ordered bytes with
// atomic writes: Pebble on disk ([OpenPebble]) or memory ([NewMemory]). Over it
// are typed views such as [KV]. In between is an overlay, a cache of decoded
// values that holds every change until the engine has it:
//
//	e, err := state.OpenPebble(dir, state.PebbleOptions{})
//	d, err := state.Open(e, state.Options{Stores: []state.Spec{{Name: "counts"}}})
//	counts, err := state.OpenKV(d, "counts", codec.String, codec.Int64)
//
// # A transaction
//
// It is open all the time, and what its owner does is always the same:
//
//  1. Restore: [Part.Apply] the changelog from [Part.Position] on.
//  2. Read and change rows; [DB.Mark] before a record that may fail, [DB.Undo]
//     if it did.
//  3. Write [DB.Changes] to the changelogs and commit to Kafka. To go on with
//     the next transaction meanwhile, [DB.Freeze] and go to 2.
//  4. If it is known to be committed, say so: [DB.Committed]. If not, or if it
//     was aborted, [DB.Rewind], which takes back the next one too, and go to 1.
//  5. Every now and then: [DB.Persist], [Write.Commit] in the background,
//     [DB.Persisted]; and less often [DB.Flush].
//
// # What a crash leaves
//
// The rows on the engine are the changelog's up to Position, after a crash at
// any moment too: rows and position are in one atomic batch, and only committed
// rows get into one. No log of our own is written. What a crash loses is the
// end, which the changelog still has.
//
// # What is not promised
//
// A View that walks over rows sees committed ones, but no snapshot. Len counts
// all rows when it is asked first. A value with pointers is the store's once it
// was put: changing it behind the store's back changes history.
package state
