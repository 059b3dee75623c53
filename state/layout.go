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
//	00 's' name    store: id uint16, kind uint8, position int64; of other kinds
//	               than KindKeyValue: segment int64, time id uint16, last uint32
//	id key         row, id from 0100 on: time int64, value
//	time id key    of a store with an order by time: nothing
//
// Numbers are big-endian. Ids are given at the first opening and never again.
// What key is depends on the kind: see [Kind].
const (
	layoutVersion = 1
	firstID       = 0x0100
	idSize        = 2
	timeSize      = 8
)

var (
	formatKey   = []byte{0, 'f'}
	metaPrefix  = []byte{0, 'm'}
	storePrefix = []byte{0, 's'}
)

// rowKey is where the row of a key, in the store's own order, is in the engine.
func rowKey(dst []byte, id uint16, key []byte) []byte {
	return append(binary.BigEndian.AppendUint16(dst, id), key...)
}

// rowValue is what is there.
func rowValue(dst, value []byte, time int64) []byte {
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
	position int64
	keys     layout
	timeID   uint16 // of the order by time, 0 if there is none
	last     uint32 // the last sequence number
}

const (
	keyValueRecord = 2 + 1 + 8
	windowedRecord = keyValueRecord + 8 + 2 + 4
)

func (r storeRecord) bytes() []byte {
	dst := binary.BigEndian.AppendUint16(nil, r.id)
	dst = append(dst, byte(r.keys.kind))
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.position))
	if r.keys.kind == KindKeyValue {
		return dst
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.keys.segment))
	dst = binary.BigEndian.AppendUint16(dst, r.timeID)
	return binary.BigEndian.AppendUint32(dst, r.last)
}

func readStoreRecord(src []byte) (storeRecord, error) {
	if len(src) != keyValueRecord && len(src) != windowedRecord {
		return storeRecord{}, fmt.Errorf("%w: a store record of %d bytes", ErrCorrupt, len(src))
	}
	r := storeRecord{
		id:       binary.BigEndian.Uint16(src),
		keys:     layout{kind: Kind(src[2]), segment: 1},
		position: int64(binary.BigEndian.Uint64(src[3:])),
	}
	if rest := src[keyValueRecord:]; len(rest) > 0 {
		r.keys.segment = int64(binary.BigEndian.Uint64(rest))
		r.timeID = binary.BigEndian.Uint16(rest[8:])
		r.last = binary.BigEndian.Uint32(rest[10:])
	}
	if r.id < firstID || r.position < 0 || r.keys.segment < 1 || (r.keys.kind == KindKeyValue) != (len(src) == keyValueRecord) {
		return storeRecord{}, fmt.Errorf("%w: a store record with id %d, kind %d, position %d, segment %d",
			ErrCorrupt, r.id, r.keys.kind, r.position, r.keys.segment)
	}
	return r, nil
}

func readInt64(src []byte) (int64, error) {
	if len(src) != 8 {
		return 0, fmt.Errorf("%w: a number of %d bytes", ErrCorrupt, len(src))
	}
	return int64(binary.BigEndian.Uint64(src)), nil
}
