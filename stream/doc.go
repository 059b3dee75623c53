// Package stream builds and runs exactly-once stream processors on Kafka.
//
// A topology is written as a function of a [Builder]. It reads topics as a
// [Stream] (independent events) or a [Table] (the latest row of each key) and
// chains operators on them. [Run] runs it; streamtest runs it in a test,
// without a broker.
//
//	var (
//		Lines  = stream.NewTopic("lines", codec.String, codec.String)
//		Counts = stream.NewTopic("word-counts", codec.String, codec.Int64)
//	)
//
//	func Topology(b *stream.Builder) {
//		b.Stream(Lines).
//			FlatMapValues(strings.Fields).
//			GroupBy(func(_, word string) string { return word }).
//			Count("counts").
//			To(Counts)
//	}
//
// # Nulls
//
// Kafka lets the key and the value of a record be null. In Go no value ever
// stands for null: not a zero, not an empty string, not a nil slice, map or
// pointer. Absence is said beside the value, by six rules.
//
//  1. A record without key has [Record].NoKey set, a record without value, a
//     tombstone, has NoValue set; Key or Value is then the zero value. Codecs
//     never see null.
//  2. Functions of values never see a tombstone. It goes around them, on to
//     the next operator: Filter, Split, MapValues, MapOrDelete, FlatMapValues,
//     Peek, Merge, Repartition and To let it through, Split to every branch,
//     so that a delete reaches each compacted topic that may hold the key.
//     What cannot go on without the value drops it: Map, FlatMap, SelectKey,
//     GroupBy, aggregates, joins, ForEach.
//  3. Functions of keys see the zero key where there is none, and the record
//     stays without key until Map, SelectKey or GroupBy gives it one. What
//     goes by that key (aggregates, tables, inner joins, Repartition) drops
//     it; a left join of a stream passes it on at once, unmatched.
//  4. Functions of a whole [Record] see everything and can make everything:
//     FilterRecords, SplitRecords, MapRecords, Route, [Topic.EventTime] and
//     [Topic.PartitionBy]. So does Process; but there a forgotten check would
//     be silent, so it gets tombstones only with the option [Tombstones].
//     Drop them with FilterRecords([HasValue]).
//  5. A missing thing is a bool after its value. Coming in: the row of a left
//     join, the row that Update is about to make. Going out, false means none:
//     Update and MapOrDelete delete the row.
//  6. A tombstone deletes wherever rows are kept: in Table and ToTable. Table
//     operators never call a function for a missing row, and a deleted row
//     leaves Table.ToStream and Table.To as a tombstone.
//
// Whatever is dropped by these rules is counted with its reason, and
// [HookDropped] hears of it.
//
// # Functions
//
// Functions given to operators run on one goroutine per task and must be
// pure, apart from Peek, ForEach and processors: after an abort the same
// record comes again. A value handed to a function belongs to the library:
// return a new one rather than change a map or slice inside it.
//
// A function that can fail has a Try form; anywhere else a panic is taken as
// the failure of the record. What becomes of a failed record is decided by
// [Config].OnError or, for one operator, by the option [OnError].
//
// # Names
//
// Every operator with state or a topic of its own takes the name first. It
// names changelogs and repartition topics, as <app>-<name>-changelog and
// <app>-<name>-repartition, so a topology can change around it. Nothing with
// a generated name outlives a process.
//
// # Time
//
// A record's time is its Kafka timestamp unless [Topic.EventTime] says
// otherwise. Stream time of an operator is the largest record time that it
// has met; it decides what is late, when windows close and when timers
// are due. It is kept with the state and survives restarts.
package stream
