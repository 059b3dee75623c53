package stream

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

// upcoming is what an operator behind a source finds out about records before
// they come: an I of each, and its bytes, by a function that the user gave. What
// was found out is kept, so that the function is called once per record.
type upcoming[K, V, I any] struct {
	o       *opener
	key     codec.Codec[K]
	value   codec.Codec[V]
	codec   codec.Codec[I]
	f       func(key K, value V) I
	topic   string // of the records
	known   []known[I]
	at      int // those before are of records that have come
	buf     []byte
	encoded [][]byte
}

type known[I any] struct {
	offset int64
	i      I
}

// upcomingOf is what an operator behind in may find out, nil if in is no source
// or its records cost something to decode, which is then done once.
func upcomingOf[K, V, I any](o *opener, in *streamNode[K, V], c codec.Codec[I], f func(key K, value V) I) *upcoming[K, V, I] {
	if in.node.Kind != graph.Source || !decodesForFree(in.key) || !decodesForFree(in.value) {
		return nil
	}
	return &upcoming[K, V, I]{o: o, key: in.key, value: in.value, codec: c, f: f}
}

// decodesForFree: the codec only looks at bytes, and can do so twice.
func decodesForFree(c any) bool {
	for _, free := range []any{codec.String, codec.Bytes, codec.Int32, codec.Int64, codec.Float64, codec.Bool, codec.UUID, codec.Nothing} {
		if sameCodec(c, free) {
			return true
		}
	}
	return false
}

// look takes the records that come next in the place of those before, and returns
// the bytes of what it found out, as far as it got: where the function panics
// the record's turn has not come, and it will again.
func (u *upcoming[K, V, I]) look(recs []*kgo.Record) [][]byte {
	clear(u.known)
	u.known, u.at = u.known[:0], 0
	u.buf, u.encoded = u.buf[:0], u.encoded[:0]
	if len(recs) > 0 {
		u.topic = recs[0].Topic
	}
	u.lookAt(recs)
	return u.encoded
}

func (u *upcoming[K, V, I]) lookAt(recs []*kgo.Record) {
	defer func() { _ = recover() }()
	for _, r := range recs {
		if r.Key == nil || r.Value == nil {
			continue
		}
		k, err := u.key.Decode(r.Key)
		if err != nil {
			continue
		}
		v, err := u.value.Decode(r.Value)
		if err != nil {
			continue
		}
		i := u.f(k, v)
		at := len(u.buf)
		if u.buf, err = u.codec.Append(u.buf, i); err != nil {
			u.buf = u.buf[:at]
			continue
		}
		u.known = append(u.known, known[I]{r.Offset, i})
		u.encoded = append(u.encoded, u.buf[at:])
	}
}

// of is the I of the record that has come, whose key and value these are. A source
// may read several topics, whose offsets are alike.
func (u *upcoming[K, V, I]) of(key K, value V) I {
	if u.topic != u.o.in.topic {
		return u.f(key, value)
	}
	for u.at < len(u.known) && u.known[u.at].offset < u.o.in.offset {
		u.at++
	}
	if u.at < len(u.known) && u.known[u.at].offset == u.o.in.offset {
		return u.known[u.at].i
	}
	return u.f(key, value)
}
