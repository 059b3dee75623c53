package codec

import "time"

// Time is the codec of times: milliseconds since 1970 as [Int64], so Java reads
// it with its LongDeserializer. What is below a millisecond is cut off towards
// the past, and the zone is lost: decoded times are in UTC. A time that does
// not fit, 292 million years from now, is an error.
var Time Codec[time.Time] = timeCodec{}

type timeCodec struct{}

func (timeCodec) Append(dst []byte, v time.Time) ([]byte, error) {
	ms := v.UnixMilli()
	// UnixMilli overflows silently; only a time in range comes back.
	if time.UnixMilli(ms).Unix() != v.Unix() {
		return dst, &Error{Op: ErrEncode, Codec: "time", Reason: "the time does not fit into milliseconds since 1970"}
	}
	return Int64.Append(dst, ms)
}

func (timeCodec) Decode(src []byte) (time.Time, error) {
	if len(src) != 8 {
		return time.Time{}, wrongLength("time", src, 8)
	}
	ms, err := Int64.Decode(src)
	return time.UnixMilli(ms).UTC(), err
}
