package stream

import (
	"errors"
	"reflect"
	"slices"
	"time"
)

// A Record is one event. It is passed by value; the With methods return
// changed copies, which share headers with the original.
type Record[K, V any] struct {
	Key     K
	Value   V
	Time    time.Time
	Headers Headers
	NoKey   bool // the record has no key, and Key is the zero value
	NoValue bool // the record is a tombstone, and Value is the zero value
}

// WithKey returns r under key k.
func (r Record[K, V]) WithKey[K2 any](k K2) Record[K2, V] {
	return Record[K2, V]{Key: k, Value: r.Value, Time: r.Time, Headers: r.Headers, NoValue: r.NoValue}
}

// WithValue returns r with value v; it is no tombstone then.
func (r Record[K, V]) WithValue[V2 any](v V2) Record[K, V2] {
	return Record[K, V2]{Key: r.Key, Value: v, Time: r.Time, Headers: r.Headers, NoKey: r.NoKey}
}

// WithTime returns r at t.
func (r Record[K, V]) WithTime(t time.Time) Record[K, V] { r.Time = t; return r }

// WithHeader returns r with one more header; r's own headers do not change.
func (r Record[K, V]) WithHeader(name string, value []byte) Record[K, V] {
	r.Headers = append(slices.Clip(r.Headers), Header{name, value})
	return r
}

// WithoutKey returns r without a key.
func (r Record[K, V]) WithoutKey() Record[K, V] {
	var none K
	r.Key, r.NoKey = none, true
	return r
}

// WithoutValue returns r as a tombstone: a delete of its key.
func (r Record[K, V]) WithoutValue() Record[K, V] {
	var none V
	r.Value, r.NoValue = none, true
	return r
}

// tombstone is a record like r, of another type of values, that deletes r's
// key.
func tombstone[V2, K, V any](r Record[K, V]) Record[K, V2] {
	return Record[K, V2]{Key: r.Key, Time: r.Time, Headers: r.Headers, NoKey: r.NoKey, NoValue: true}
}

var (
	errKeyFlag   = errors.New("a record has NoKey set beside a key; use WithKey or WithoutKey to change it")
	errValueFlag = errors.New("a record has NoValue set beside a value; use WithValue or WithoutValue to change it")
	errNoTime    = errors.New("a record has no time, or one before 1970; change the record at hand with its With methods, or set Time")
)

// check reports what a record made by a user's function cannot be. It looks
// closely only at records with a flag, which are rare.
func (r *Record[K, V]) check() error {
	if r.NoKey && !reflect.ValueOf(&r.Key).Elem().IsZero() {
		return errKeyFlag
	}
	if r.NoValue && !reflect.ValueOf(&r.Value).Elem().IsZero() {
		return errValueFlag
	}
	if r.Time.Unix() < 0 {
		return errNoTime
	}
	return nil
}

// HasKey and HasValue are conditions for FilterRecords and SplitRecords.
func HasKey[K, V any](r Record[K, V]) bool { return !r.NoKey }

// HasValue is false for tombstones.
func HasValue[K, V any](r Record[K, V]) bool { return !r.NoValue }

// Headers are a record's headers, in order; names may repeat.
type Headers []Header

// A Header is one header. Headers follow Kafka, not the rules for nulls: a
// nil Value is null.
type Header struct {
	Name  string
	Value []byte
}

// Last returns the value of the last header with that name.
func (h Headers) Last(name string) (value []byte, ok bool) {
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].Name == name {
			return h[i].Value, true
		}
	}
	return nil, false
}

// A Source says where a record was read.
type Source struct {
	Topic     string
	Partition int32
	Offset    int64
}

// timeOf is a time of ours as users see it.
func timeOf(ms int64) time.Time { return time.UnixMilli(ms) }
