package kafka

import (
	"encoding/binary"
	"errors"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/semelstream/semel/internal/seam"
)

// The user data of a join: what a member tells the leader. Version 1:
//
//	byte     version
//	uint64   fingerprint of the member's sub-topologies
//	string   process, string addr (length as uvarint)
//	uvarint  workers
//	uvarint  number of lags, then for each: uvarint sub, uvarint partition, varint lag
//	uint64   fingerprint of the member's view, in groups with patterns
//
// The user data of an assignment has the version, the leader's fingerprint and
// that of its view.
const userDataVersion = 1

// errUserData is user data that this version cannot read. A newer member may
// send such data; it is planned for without its facts.
var errUserData = errors.New("user data of another version of this library")

// fingerprint tells different sets of sub-topologies apart. What changes while
// they run is no part of it.
func fingerprint(subs []seam.Sub) uint64 {
	h := fnv.New64a()
	var b []byte
	changes := seam.GroupConfig{Subs: subs}.HasPatterns()
	for _, s := range subs {
		b = b[:0]
		if !changes {
			b = binary.AppendUvarint(b, uint64(s.Tasks))
		}
		for _, t := range s.Topics {
			b = appendString(b, t)
		}
		for _, re := range s.Patterns {
			b = appendString(b, "pattern/"+re.String())
		}
		if s.Stateful {
			b = append(b, 1)
		}
		b = append(b, 0)
		h.Write(b)
	}
	return h.Sum64()
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func encodeFacts(print uint64, f seam.Facts) []byte {
	b := append([]byte{userDataVersion}, binary.BigEndian.AppendUint64(nil, print)...)
	b = appendString(b, f.Process)
	b = appendString(b, f.Addr)
	b = binary.AppendUvarint(b, uint64(max(0, f.Workers)))
	b = binary.AppendUvarint(b, uint64(len(f.Lags)))
	for _, t := range slices.SortedFunc(maps.Keys(f.Lags), seam.Task.Compare) {
		b = binary.AppendUvarint(b, uint64(t.Sub))
		b = binary.AppendUvarint(b, uint64(t.Partition))
		b = binary.AppendVarint(b, f.Lags[t])
	}
	return b
}

func decodeFacts(b []byte) (print uint64, f seam.Facts, err error) {
	print, f, _, err = readFacts(b)
	return print, f, err
}

// readFacts returns what follows, too.
func readFacts(b []byte) (print uint64, f seam.Facts, rest []byte, err error) {
	print, b, err = decodePrint(b)
	if err != nil {
		return 0, f, nil, err
	}
	r := reader{b: b}
	f.Process, f.Addr = r.string(), r.string()
	f.Workers = int(r.uvarint(1 << 20))
	n := r.uvarint(uint64(len(r.b))) // three bytes each, at least one
	f.Lags = make(map[seam.Task]int64, n)
	for range n {
		t := seam.Task{Sub: int32(r.uvarint(1<<31 - 1)), Partition: int32(r.uvarint(1<<31 - 1))}
		f.Lags[t] = r.varint()
	}
	if r.bad {
		return 0, seam.Facts{}, nil, errUserData
	}
	return print, f, r.b, nil
}

func encodePrint(print uint64) []byte {
	return append([]byte{userDataVersion}, binary.BigEndian.AppendUint64(nil, print)...)
}

// decodePrint returns what follows, too.
func decodePrint(b []byte) (uint64, []byte, error) {
	if len(b) < 9 || b[0] != userDataVersion {
		return 0, nil, errUserData
	}
	return binary.BigEndian.Uint64(b[1:9]), b[9:], nil
}

// reader reads bounded values and remembers that it could not.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint(most uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > most {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) string() string {
	n := r.uvarint(1 << 20)
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
