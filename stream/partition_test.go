package stream

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestMurmur2IsKafkas(t *testing.T) {
	for in, want := range map[string]int32{ // from the tests of Kafka's own client
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		if got := int32(murmur2([]byte(in))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestPartitionsAreTheClientsOwn(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	client := kgo.StickyKeyPartitioner(nil).ForTopic("t")
	for range 10_000 {
		key := make([]byte, 1+rnd.IntN(40))
		for i := range key {
			key[i] = byte(rnd.Uint32())
		}
		n := 1 + rnd.IntN(100)
		want := client.Partition(&kgo.Record{Key: key}, n)
		if got := partitionOf(key, int32(n)); int(got) != want {
			t.Fatalf("key %x: partition %d of %d, the client's is %d", key, got, n, want)
		}
	}
}

func BenchmarkMurmur2(b *testing.B) {
	for _, n := range []int{8, 36} {
		key := make([]byte, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				murmur2(key)
			}
		})
	}
}
