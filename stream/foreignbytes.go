package stream

import (
	"encoding/binary"
	"fmt"

	"github.com/semelstream/semel/codec"
)

// What the two sides of a foreign-key join send each other has the bytes of
// Kafka Streams, so that one can go on where the other stopped. Numbers are
// big-endian.
//
//	subscription | version 1 or 81 | instruction | hash 16 | primary key | partition 4
//	response     | version 0 or 80 | hash 16 | value
//
// The high bit of the version says that the hash is missing: the row on the
// left is gone. A response without bytes behind the hash has no value.

// An instruction is what the right side does with a subscription.
type instruction byte

// The instructions.
const (
	unsubscribe  instruction = iota // the subscription ends, and nobody waits for an answer
	forgetAnswer                    // it ends; answer that there is no value
	subscribe                       // answer in any case
	subscribeAny                    // answer if there is a value
)

const (
	subscriptionVersion = 1
	responseVersion     = 0
	noHash              = 0x80 // of a version
)

// A subscription is a row on the left, as the right side knows it.
type subscription struct {
	hash        valueHash
	hashed      bool // the row is there
	instruction instruction
	primary     []byte // encoded key
	partition   int32  // of the left side's task
}

// appendTo appends the subscription's bytes.
func (s *subscription) appendTo(dst []byte) []byte {
	dst = appendHash(dst, subscriptionVersion, byte(s.instruction), s.hash, s.hashed)
	dst = append(dst, s.primary...)
	return binary.BigEndian.AppendUint32(dst, uint32(s.partition))
}

// appendHash appends the version, what follows it, and the hash.
func appendHash(dst []byte, version, next byte, hash valueHash, hashed bool) []byte {
	if !hashed {
		return append(dst, version|noHash, next)
	}
	return append(append(dst, version, next), hash[:]...)
}

// parseSubscription reads a subscription, which shares b's memory.
func parseSubscription(b []byte) (s subscription, err error) {
	if len(b) < 2 {
		return s, foreignError("subscription", "%d bytes", len(b))
	}
	if v := b[0] &^ noHash; v > subscriptionVersion {
		return s, foreignError("subscription", "version %d; %d is known", v, subscriptionVersion)
	}
	s.hashed, s.instruction = b[0]&noHash == 0, instruction(b[1])
	if s.instruction > subscribeAny {
		return s, foreignError("subscription", "instruction %d", b[1])
	}
	rest := b[2:]
	if s.hashed {
		if len(rest) < len(s.hash) {
			return s, foreignError("subscription", "%d bytes", len(b))
		}
		rest = rest[copy(s.hash[:], rest):]
	}
	if len(rest) < 4 {
		return s, foreignError("subscription", "%d bytes", len(b))
	}
	end := len(rest) - 4
	s.primary, s.partition = rest[:end:end], int32(binary.BigEndian.Uint32(rest[end:]))
	return s, nil
}

// A response is a row on the right, or none, for a row on the left that had
// the hash.
type response struct {
	hash     valueHash
	hashed   bool
	value    []byte // encoded
	hasValue bool

	partition int32 // where it goes; not written
}

// Append is [codec.Codec.Append] of responses.
func (responses) Append(dst []byte, r response) ([]byte, error) {
	if !r.hashed {
		dst = append(dst, responseVersion|noHash)
	} else {
		dst = append(append(dst, responseVersion), r.hash[:]...)
	}
	return append(dst, r.value...), nil
}

// responses is the codec of responses, which share memory with what they are
// decoded from.
type responses struct{}

// Decode is [codec.Codec.Decode].
func (responses) Decode(b []byte) (r response, err error) {
	if len(b) == 0 {
		return r, foreignError("response", "no bytes")
	}
	if v := b[0] &^ noHash; v > responseVersion {
		return r, foreignError("response", "version %d; %d is known", v, responseVersion)
	}
	rest := b[1:]
	if r.hashed = b[0]&noHash == 0; r.hashed {
		if len(rest) < len(r.hash) {
			return r, foreignError("response", "%d bytes", len(b))
		}
		rest = rest[copy(r.hash[:], rest):]
	}
	r.value, r.hasValue = rest, len(rest) > 0
	return r, nil
}

func foreignError(of, format string, args ...any) error {
	return &codec.Error{Op: codec.ErrDecode, Codec: "foreign-key " + of, Reason: fmt.Sprintf(format, args...)}
}

// emptyValue is the header of a response whose value has no bytes, which could
// not be told from none otherwise. (Kafka Streams takes it for none.)
var emptyValue = Header{Name: "semel-empty-value"}

// takeEmpty takes the header away and makes the response's value empty.
func takeEmpty(r *response, h Headers) Headers {
	if n := len(h); !r.hasValue && n > 0 && h[n-1].Name == emptyValue.Name {
		r.value, r.hasValue = []byte{}, true
		return h[: n-1 : n-1]
	}
	return h
}

// subscriptionPrefix appends how the keys of a foreign key's subscriptions
// begin. It has the length, so that one foreign key is not taken for the
// beginning of another:
//
//	length of foreign key 4 | foreign key | primary key
func subscriptionPrefix(dst, foreign []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(foreign))), foreign...)
}
