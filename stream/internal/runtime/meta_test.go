package runtime

import (
	"maps"
	"testing"
)

// What Kafka Streams 4.4.0 committed, its stores with finals in the order of a
// hash map: either program goes on from the other's times.
func TestMetadataIsKafkaStreams(t *testing.T) {
	for _, c := range []struct {
		recorded, ours string // ours has the names in order
		time           int64
		named          map[string]int64
	}{
		{
			recorded: "AgAAAaIpwQPI", ours: "AgAAAaIpwQPI", time: 1795996845000,
		},
		{
			recorded: "AgAAAaIpwQPIAAAAAwAAAAZzbGVtaXQAAAGiKcCBUAAAAAV3ZW1pdAAAAaIpwIFQAAAACHNlc3NlbWl0AAABoinAbcg=",
			ours:     "AgAAAaIpwQPIAAAAAwAAAAhzZXNzZW1pdAAAAaIpwG3IAAAABnNsZW1pdAAAAaIpwIFQAAAABXdlbWl0AAABoinAgVA=",
			time:     1795996845000,
			named:    map[string]int64{"slemit": 1795996811600, "wemit": 1795996811600, "sessemit": 1795996806600},
		},
	} {
		ms, named := decodeMeta(c.recorded)
		if ms != c.time || !maps.Equal(named, c.named) {
			t.Errorf("%s: got %d, %v", c.recorded, ms, named)
		}
		if got := encodeMeta(ms, named); got != c.ours {
			t.Errorf("wrote %s, want %s", got, c.ours)
		}
		if ms, named := decodeMeta(c.ours); ms != c.time || !maps.Equal(named, c.named) {
			t.Errorf("ours: got %d, %v", ms, named)
		}
	}
}
