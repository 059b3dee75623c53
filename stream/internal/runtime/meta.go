package runtime

import (
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
)

// Times travel in the metadata of the offset commit, in the transaction, so
// that a lost disk forgets none of them. The format is Kafka Streams' (base64
// of version 2, the partition time, and named times), so that an application
// can move between the two; Kafka Streams reads the names it knows.
const metaVersion = 2

// streamTimeName is the task's stream time among the named times.
const streamTimeName = "semel.stream-time"

// encodeMeta writes a partition's largest record time and the task's named
// times.
func encodeMeta(partitionTime int64, named map[string]int64) string {
	b := []byte{metaVersion}
	b = binary.BigEndian.AppendUint64(b, uint64(max(partitionTime, -1)))
	if len(named) > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(len(named)))
		for _, name := range slices.Sorted(maps.Keys(named)) {
			b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
			b = append(b, name...)
			b = binary.BigEndian.AppendUint64(b, uint64(named[name]))
		}
	}
	return base64.StdEncoding.EncodeToString(b)
}

// decodeMeta reads what encodeMeta wrote. Metadata of others, or none, gives
// nothing: times then begin anew.
func decodeMeta(s string) (partitionTime int64, named map[string]int64) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(b) < 9 || b[0] != metaVersion {
		return -1, nil
	}
	partitionTime = int64(binary.BigEndian.Uint64(b[1:]))
	b = b[9:]
	if len(b) < 4 {
		return partitionTime, nil
	}
	n := binary.BigEndian.Uint32(b)
	b = b[4:]
	named = map[string]int64{}
	for range n {
		if len(b) < 4 {
			return partitionTime, named
		}
		l := int(binary.BigEndian.Uint32(b))
		if b = b[4:]; l < 0 || len(b) < l+8 {
			return partitionTime, named
		}
		named[string(b[:l])] = int64(binary.BigEndian.Uint64(b[l:]))
		b = b[l+8:]
	}
	return partitionTime, named
}

// mergeTimes adds named times to into; times only grow, so the larger wins.
func mergeTimes(into, named map[string]int64) {
	for name, ms := range named {
		if old, ok := into[name]; !ok || ms > old {
			into[name] = ms
		}
	}
}
