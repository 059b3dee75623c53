package stream

import (
	"time"

	"github.com/semelstream/semel/codec"
)

// A Topic is a Kafka topic with the types that travel on it and what is true
// of it for everyone: how it is partitioned, where its times come from.
// Declare it once, as a package variable: sources, sinks, tests and the
// console take the same value.
type Topic[K, V any] struct {
	Name  string
	Key   codec.Codec[K]
	Value codec.Codec[V]

	one  func(Record[K, V], int) int   // PartitionBy
	many func(Record[K, V], int) []int // Multicast
	time func(Record[K, V], time.Time) (time.Time, bool)
}

// NewTopic returns a topic partitioned as Kafka's own clients do: by murmur2
// of the encoded key.
func NewTopic[K, V any](name string, key codec.Codec[K], value codec.Codec[V]) Topic[K, V] {
	return Topic[K, V]{Name: name, Key: key, Value: value}
}

// Named returns t under another name, for topics that differ only in that.
func (t Topic[K, V]) Named(name string) Topic[K, V] { t.Name = name; return t }

// PartitionBy returns t with partitions chosen by f, which gets the number of
// partitions n and returns one of [0, n). Joins check that both sides are
// partitioned by the same f, a function with the same name: let f be declared,
// generic in the type of values, and not be made at run time.
func (t Topic[K, V]) PartitionBy(f func(r Record[K, V], n int) int) Topic[K, V] {
	t.one, t.many = f, nil
	return t
}

// Multicast is PartitionBy for records that go to several partitions, one
// copy to each; to none drops the record. A multicast topic cannot be joined.
func (t Topic[K, V]) Multicast(f func(r Record[K, V], n int) []int) Topic[K, V] {
	t.one, t.many = nil, f
	return t
}

// EventTime returns t with record times taken by f when the topic is read.
// The record that f gets carries Kafka's timestamp; latest is the largest
// time taken so far on the partition, zero before the first. False drops the
// record.
func (t Topic[K, V]) EventTime(f func(r Record[K, V], latest time.Time) (time.Time, bool)) Topic[K, V] {
	t.time = f
	return t
}
