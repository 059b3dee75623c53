package stream

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ReadDeadLetter reads a record of a dead-letter topic: what failed, and the
// record as it was read, or as [Wait] held it, with the headers that it had. Its Err has the text of
// the failure only.
func ReadDeadLetter(k *kgo.Record) (*Failure, error) {
	f := &Failure{Key: k.Key, Value: k.Value, Time: k.Timestamp}
	found := false
	for _, h := range k.Headers {
		v := string(h.Value)
		switch h.Key {
		case "__streams.errors.message":
			f.Err, found = errors.New(v), true
		case "__streams.errors.stacktrace":
			f.Stack = h.Value
		case "__streams.errors.topic":
			f.Topic = v
		case "__streams.errors.partition":
			n, _ := strconv.ParseInt(v, 10, 32)
			f.Partition = int32(n)
		case "__streams.errors.offset":
			f.Offset, _ = strconv.ParseInt(v, 10, 64)
		case "__semel.errors.app":
			f.app = v
		case "__semel.errors.task":
			f.Task = v
		case "__semel.errors.operator":
			f.Operator = v
		case "__semel.errors.op":
			f.Op = Op(v)
		case "__semel.errors.held":
			f.Held = v == "true"
		case "__semel.errors.time":
			ms, _ := strconv.ParseInt(v, 10, 64)
			f.Time = time.UnixMilli(ms)
		default:
			if !strings.HasPrefix(h.Key, "__streams.errors.") {
				f.Headers = append(f.Headers, Header{h.Key, h.Value})
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("record %s/%d at offset %d is no dead letter: it has no header __streams.errors.message", k.Topic, k.Partition, k.Offset)
	}
	return f, nil
}
