package state

import (
	"encoding/binary"
	"fmt"
)

// A Kind says how the rows of a store are laid out. Its number is on disk.
//
// The key of a row in its changelog is Kafka Streams'. The key on the engine is
// made from it, so that what is read together lies together:
//
//	                 engine                             changelog
//	KeyValue         key                                key
//	Window           start 8, key                       key, start 8, 0 (4)
//	WindowByKey      segment 8, key, start 8, seq 4     key, start 8, seq 4
//	Session          segment 8, key, end 8, start 8     key, end 8, start 8
//	Versioned        key (value: all its versions)      key, one record per version
//	WindowOnce       start 8, key                       many rows per record: see bundle
//
// Times are ms, big-endian and never negative. A segment is the start of a
// window, or the end of a session, divided by the store's length of segments.
type Kind uint8

// The kinds of stores.
const (
	// KindKeyValue is rows by key.
	KindKeyValue Kind = 1 + iota
	// KindWindow is rows by key and the start of a window, in order of start:
	// for stores in which windows are found one by one.
	KindWindow
	// KindWindowByKey is the same in order of key within a segment of time: for
	// stores in which the windows of one key are read together.
	KindWindowByKey
	// KindSession is rows by key and session, in order of key within a segment
	// of time.
	KindSession
	// KindVersioned is the versions of a key's value.
	KindVersioned
	// KindWindowOnce is rows by key and the start of a window, in order of start,
	// that are put once, never changed or deleted, and expire; no key should have
	// more than a few at a time. Its changelog has a record for many of them, in a
	// form that Kafka Streams does not know.
	KindWindowOnce
)

var kindNames = map[Kind]string{
	KindKeyValue: "key-value", KindWindow: "window", KindWindowByKey: "window by key",
	KindSession: "session", KindVersioned: "versioned", KindWindowOnce: "window once",
}

// String is the kind's name, for errors.
func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return fmt.Sprint("kind ", uint8(k))
}

// expires: rows have a time in their key by which they expire.
func (k Kind) expires() bool { return k.byStart() || k.segmented() }

// byStart: keys begin with the start of a window.
func (k Kind) byStart() bool { return k == KindWindow || k == KindWindowOnce }

// segmented: keys begin with a segment.
func (k Kind) segmented() bool { return k == KindWindowByKey || k == KindSession }

// A layout translates between the keys of one row.
type layout struct {
	kind    Kind
	segment int64 // ms, 1 if the kind has no segments
}

const (
	segmentSize = 8
	seqSize     = 4
	// tailSize is what stands behind the key, in the changelog and in a segment.
	windowTail  = timeSize + seqSize
	sessionTail = timeSize + timeSize
)

func (l layout) tail() int {
	switch l.kind {
	case KindWindow, KindWindowByKey, KindWindowOnce:
		return windowTail
	case KindSession:
		return sessionTail
	}
	return 0
}

func getTime(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func addTime(dst []byte, ms int64) []byte { return binary.BigEndian.AppendUint64(dst, uint64(ms)) }

// fromLog is the key of a changelog record's row.
func (l layout) fromLog(dst, log []byte) ([]byte, error) {
	n := len(log) - l.tail()
	if n < 0 {
		return dst, fmt.Errorf("a changelog record of a %s store with a key of %d bytes", l.kind, len(log))
	}
	switch l.kind {
	case KindWindow, KindWindowOnce:
		return append(append(dst, log[n:n+timeSize]...), log[:n]...), nil
	case KindWindowByKey, KindSession:
		return append(addTime(dst, getTime(log[n:])/l.segment), log...), nil
	}
	return append(dst, log...), nil
}

// toLog undoes fromLog.
func (l layout) toLog(dst, key []byte) []byte {
	switch l.kind {
	case KindWindow, KindWindowOnce:
		return append(append(append(dst, key[timeSize:]...), key[:timeSize]...), 0, 0, 0, 0)
	case KindWindowByKey, KindSession:
		return append(dst, key[segmentSize:]...)
	}
	return append(dst, key...)
}

// time is what a row expires by: its window's start, its session's end.
func (l layout) time(key []byte) int64 {
	if l.kind.byStart() {
		return getTime(key)
	}
	return getTime(key[len(key)-l.tail():])
}

// inner is the part of key that the user's codec wrote.
func (l layout) inner(key []byte) []byte {
	switch l.kind {
	case KindWindow, KindWindowOnce:
		return key[timeSize:]
	case KindWindowByKey, KindSession:
		return key[segmentSize : len(key)-l.tail()]
	}
	return key
}

// toTime is the key in the order by time: start, key, seq or end, start, key.
func (l layout) toTime(dst, key []byte) []byte {
	at, n := key[segmentSize:], len(key)-segmentSize-l.tail()
	if l.kind == KindSession {
		return append(append(dst, at[n:]...), at[:n]...)
	}
	dst = append(dst, at[n:n+timeSize]...)
	return append(append(dst, at[:n]...), at[n+timeSize:]...)
}

// fromTime undoes toTime.
func (l layout) fromTime(dst, key []byte) []byte {
	dst = addTime(dst, getTime(key)/l.segment)
	if l.kind == KindSession {
		return append(append(dst, key[sessionTail:]...), key[:sessionTail]...)
	}
	n := len(key) - seqSize
	dst = append(dst, key[timeSize:n]...)
	return append(append(dst, key[:timeSize]...), key[n:]...)
}
