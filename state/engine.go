package state

import "errors"

// An Engine is ordered bytes with atomic writes, below the transactions of a
// [DB]. OpenPebble and NewMemory make two; package statetest has the suite
// that every engine passes.
//
// Keys are ordered as bytes.Compare does. Get, Scan, Write and Flush may be
// called from several goroutines at once; an iterator belongs to one. Nothing
// else overlaps with Close, and nothing follows it.
type Engine interface {
	// Get calls use with the value of key, which is valid inside use only,
	// and reports whether there is one. An error of use comes back as it is.
	// Get keeps no reference to key.
	Get(key []byte, use func(value []byte) error) (ok bool, err error)
	// Scan reads the keys from from, included, to to, excluded; nil is open.
	// The iterator shows the rows as they are at the time of the call and
	// must be closed. Scan keeps no reference to from and to.
	Scan(from, to []byte, backward bool) Iterator
	// Write applies all of b, in order, or nothing; it keeps no reference to
	// b. What was written may be lost in a crash until Flush, but only from
	// the end: of writes that followed one another a crash keeps a prefix,
	// and each of them wholly or not at all.
	Write(b *Batch) error
	// Flush makes what was written survive a crash.
	Flush() error
	// Close flushes and ends the engine. All iterators are closed before.
	Close() error
}

// An Iterator walks over the rows of a Scan. It begins before the first row.
type Iterator interface {
	// Next moves to the next row; false is the end or an error.
	Next() bool
	// Seek moves, in place of Next, to the first row from key on, backward to
	// the last one before key; false is the end or an error. It goes in the
	// direction of the scan only, and keeps no reference to key.
	Seek(key []byte) bool
	// Key and Value are the row's, valid until the next call.
	Key() []byte
	Value() []byte
	// Err is why Next returned false, nil at the end of the rows.
	Err() error
	// Close frees the iterator and returns Err.
	Close() error
}

// Errors of engines and stores, for errors.Is.
var (
	// ErrInUse: another process, named in the message, has the directory open.
	ErrInUse = errors.New("state directory is in use")
	// ErrCorrupt: what is on the disk is not what was written. Quarantine
	// moves the directory aside, and a full restore fills a new one.
	ErrCorrupt = errors.New("state is corrupt")
	// ErrFormat: the directory was written in a format that this version
	// does not know.
	ErrFormat = errors.New("state directory has an unknown format")
	// ErrClosed: the DB was closed.
	ErrClosed = errors.New("state is closed")
	// ErrRewound: a Rewind came before this Write began to commit; nothing
	// was written.
	ErrRewound = errors.New("write was dropped by a rewind")
)
