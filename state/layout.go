package state

import (
	"encoding/binary"
	"fmt"
)

// The keys of an engine, format 1. All stores of a task are in one engine, so
// that one batch changes all of them and their positions.
//
//	00 'f'         format version, uint32
//	00 'm' name    meta: int64
//	00 's' name    store: id uint16, kind uint8, position int64
//	id key         row, id from 0100 on: time int64, value
//
// Numbers are big-endian. Ids are given at the first opening and never again.
const (
	layoutVersion = 1
	firstID       = 0x0100
	timeSize      = 8
)

var (
	formatKey   = []byte{0, 'f'}
	metaPrefix  = []byte{0, 'm'}
	storePrefix = []byte{0, 's'}
)

// A Kind says how the rows of a store are laid out.
type Kind uint8

// KindKeyValue is rows by key: the changelog's key and value are the store's.
// Its number is on disk. Windows, sessions and versions will have their own.
const KindKeyValue Kind = 1

// rowKey is where the row of a changelog record is in the engine.
func (k Kind) rowKey(dst []byte, id uint16, key []byte, _ int64) []byte {
	return append(binary.BigEndian.AppendUint16(dst, id), key...)
}

// rowValue is what is there.
func (k Kind) rowValue(dst, value []byte, time int64) []byte {
	return append(binary.BigEndian.AppendUint64(dst, uint64(time)), value...)
}

// splitRow undoes rowValue.
func splitRow(row []byte) (value []byte, time int64, err error) {
	if len(row) < timeSize {
		return nil, 0, fmt.Errorf("%w: a row of %d bytes", ErrCorrupt, len(row))
	}
	return row[timeSize:], int64(binary.BigEndian.Uint64(row)), nil
}

// storeRange are all rows of a store, to is excluded.
func storeRange(id uint16) (from, to []byte) {
	return binary.BigEndian.AppendUint16(nil, id), prefixEnd(binary.BigEndian.AppendUint16(nil, id))
}

// prefixEnd is the first key behind all that begin with prefix; nil if there
// is none.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// storeRecord is a store's line in the catalogue.
type storeRecord struct {
	id       uint16
	kind     Kind
	position int64
}

func (r storeRecord) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, r.id)
	dst = append(dst, byte(r.kind))
	return binary.BigEndian.AppendUint64(dst, uint64(r.position))
}

func readStoreRecord(src []byte) (storeRecord, error) {
	if len(src) != 2+1+8 {
		return storeRecord{}, fmt.Errorf("%w: a store record of %d bytes", ErrCorrupt, len(src))
	}
	r := storeRecord{
		id:       binary.BigEndian.Uint16(src),
		kind:     Kind(src[2]),
		position: int64(binary.BigEndian.Uint64(src[3:])),
	}
	if r.id < firstID || r.position < 0 {
		return storeRecord{}, fmt.Errorf("%w: a store record with id %d, position %d", ErrCorrupt, r.id, r.position)
	}
	return r, nil
}

func readInt64(src []byte) (int64, error) {
	if len(src) != 8 {
		return 0, fmt.Errorf("%w: a number of %d bytes", ErrCorrupt, len(src))
	}
	return int64(binary.BigEndian.Uint64(src)), nil
}
