package state

import (
	"iter"
	"time"
)

// An Entry is one row.
type Entry[K, V any] struct {
	Key   K
	Value V
	Time  time.Time // of the record that wrote it
}

// A Rows is a sequence of rows that ends at the first error. Break out of it
// freely; there is nothing to close.
type Rows[K, V any] = iter.Seq2[Entry[K, V], error]

// A Reader reads rows by key. Keys are ordered by their encoding, and both
// ends of a range belong to it.
type Reader[K, V any] interface {
	Get(key K) (value V, ok bool, err error)
	Range(from, to K) Rows[K, V]
	Prefix(encoded []byte) Rows[K, V] // keys whose encoding begins so
	From(key K) Rows[K, V]
	To(key K) Rows[K, V]
	All() Rows[K, V]
	Backward() Reader[K, V] // the same rows, last first
	Len() int64             // about
}

// A KeyValue reads and writes rows by key. No value deletes; Delete does.
type KeyValue[K, V any] interface {
	Reader[K, V]
	Put(key K, value V) error
	Delete(key K) error
}

// A WindowKey is a key and the time at which its window begins.
type WindowKey[K any] struct {
	Key   K
	Start time.Time
}

// Windows reads and writes rows by key and time. Both ends of a stretch of
// time belong to it. Rows older than the store's retention are not seen.
type Windows[K, V any] interface {
	Put(key K, start time.Time, value V) error
	Delete(key K, start time.Time) error // does nothing in a store that keeps duplicates
	Get(key K, start time.Time) (value V, ok bool, err error)
	Fetch(key K, from, to time.Time) Rows[WindowKey[K], V]
	FetchRange(first, last K, from, to time.Time) Rows[WindowKey[K], V]
	FetchAll(from, to time.Time) Rows[WindowKey[K], V]
	All() Rows[WindowKey[K], V]
	Backward() Windows[K, V] // the same rows, last first
}

// A SessionKey is a key and a session; both ends belong to it.
type SessionKey[K any] struct {
	Key        K
	Start, End time.Time
}

// Sessions reads and writes rows by key and session. Rows that ended longer
// ago than the store's retention are not seen.
type Sessions[K, V any] interface {
	Put(session SessionKey[K], value V) error
	Delete(session SessionKey[K]) error
	Get(session SessionKey[K]) (value V, ok bool, err error)
	Fetch(key K) Rows[SessionKey[K], V]
	FetchRange(first, last K) Rows[SessionKey[K], V]
	// Overlapping returns the key's sessions that have some of [from, to].
	Overlapping(key K, from, to time.Time) Rows[SessionKey[K], V]
	Backward() Sessions[K, V] // the same rows, last first
}

// A Version is a value and when it was valid: from From until before To,
// which is zero for the newest.
type Version[V any] struct {
	Value    V
	From, To time.Time
}

// Versions reads and writes the versions of rows. What lies further back than
// the store's history is neither kept nor found, except the newest version.
type Versions[K, V any] interface {
	// Put and Delete return false for a time beyond the history; the store
	// did not change then. The version begins at t and is valid until to,
	// zero if it is the newest.
	Put(key K, t time.Time, value V) (to time.Time, ok bool, err error)
	Delete(key K, t time.Time) (to time.Time, ok bool, err error)
	Get(key K) (v Version[V], ok bool, err error)
	GetAsOf(key K, t time.Time) (v Version[V], ok bool, err error)
	History(key K, from, to time.Time) iter.Seq2[Version[V], error]
}
