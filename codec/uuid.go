package codec

import (
	"encoding/hex"
	"fmt"
)

// UUID is the codec of UUIDs: 36 characters of text, in lower case, because
// that is what Kafka's UUIDSerializer writes and its UUIDDeserializer reads.
// Decode takes upper case too, but no other form. For 16 raw bytes, smaller
// but unreadable to Java, use [Via] with [Bytes].
var UUID Codec[[16]byte] = uuidCodec{}

const uuidLen = 36

// uuidGroups are the bytes that end in a hyphen.
var uuidGroups = [...]int{4, 6, 8, 10, 16}

type uuidCodec struct{}

func (uuidCodec) Append(dst []byte, v [16]byte) ([]byte, error) {
	from := 0
	for _, to := range uuidGroups {
		if from > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, v[from:to])
		from = to
	}
	return dst, nil
}

func (uuidCodec) Decode(src []byte) (v [16]byte, err error) {
	if len(src) != uuidLen {
		return v, wrongLength("uuid", src, uuidLen)
	}
	from, at := 0, 0
	for _, to := range uuidGroups {
		if from > 0 {
			if src[at] != '-' {
				return [16]byte{}, badUUID(at, "is no hyphen")
			}
			at++
		}
		digits := 2 * (to - from)
		if _, err := hex.Decode(v[from:to], src[at:at+digits]); err != nil {
			return [16]byte{}, badUUID(at, "and what follows is not all hexadecimal")
		}
		from, at = to, at+digits
	}
	return v, nil
}

// badUUID leaves out hex's own error: it quotes the character.
func badUUID(at int, what string) error {
	return &Error{Op: ErrDecode, Codec: "uuid", Reason: fmt.Sprintf("byte %d %s", at, what)}
}
