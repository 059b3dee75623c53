package state

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestAnIndexFindsWhatIsInItAndNothingElse(t *testing.T) {
	var x index
	x.grow()
	rnd := rand.New(rand.NewPCG(1, 1))
	have := map[uint32]uint32{} // entry to hash
	find := func(hash, idx uint32) bool {
		for i := x.first(hash); x.slots[i] != 0; i = (i + 1) & x.mask {
			if x.slots[i] == uint64(hash)<<32|uint64(idx) {
				return true
			}
		}
		return false
	}
	for i := uint32(1); i < 6000; i++ {
		hash := rnd.Uint32() & 0xf000_00ff // many meet
		if i%3 == 0 {
			hash |= 0x3fff // at the end, where runs wrap round
		}
		x.insert(hash, i)
		have[i] = hash
		if i%2 == 0 {
			for idx, hash := range have {
				x.remove(hash, idx)
				delete(have, idx)
				if find(hash, idx) {
					t.Fatal("found what was removed")
				}
				break
			}
		}
		if i%200 != 0 {
			continue
		}
		for idx, hash := range have {
			if !find(hash, idx) {
				t.Fatalf("entry %d is lost", idx)
			}
		}
	}
	if x.used != len(have) {
		t.Errorf("%d used, want %d", x.used, len(have))
	}
}

func TestAnArenaKeepsKeysApart(t *testing.T) {
	var a arena
	rnd := rand.New(rand.NewPCG(2, 2))
	type key struct {
		ref  uint32
		want []byte
	}
	var keys []key
	for i := range 3000 {
		n := 1 + rnd.IntN(600)
		switch {
		case i%100 == 0:
			n = 1 + rnd.IntN(3<<20)
		case i%10 == 0:
			n = 1 + rnd.IntN(100_000)
		}
		want := bytes.Repeat([]byte(fmt.Sprint(i)), n/len(fmt.Sprint(i))+1)[:n]
		keys = append(keys, key{a.put(want), want})
		for len(keys) > 100 {
			j := rnd.IntN(len(keys))
			a.drop(keys[j].ref, len(keys[j].want))
			keys[j] = keys[len(keys)-1]
			keys = keys[:len(keys)-1]
		}
		if i%100 == 0 {
			for _, k := range keys {
				if !bytes.Equal(a.get(k.ref, len(k.want)), k.want) {
					t.Fatalf("a key of %d bytes has changed", len(k.want))
				}
			}
		}
	}
	total := 0
	for _, c := range a.chunks {
		total += len(c)
	}
	if total > 128<<20 {
		t.Errorf("the arena grew to %d MiB for a hundred keys", total>>20)
	}
}
