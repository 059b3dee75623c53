package state_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

const benchKeys = 100_000

func benchKV[K any](b *testing.B, key codec.Codec[K], keys []K) *state.KV[K, int64] {
	_, s := benchDB(b, key, keys)
	return s
}

func benchDB[K any](b *testing.B, key codec.Codec[K], keys []K) (*state.DB, *state.KV[K, int64]) {
	d, err := state.Open(state.NewMemory(), state.Options{Stores: []state.Spec{{Name: "s"}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { d.Close() })
	s, err := state.OpenKV(d, "s", key, codec.Int64)
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range keys {
		if err := s.Put(k, 1, 1); err != nil {
			b.Fatal(err)
		}
	}
	return d, s
}

// randomKeys are keys of 16 bytes, in an order that no cache can guess.
func randomKeys() [][]byte {
	keys := make([][]byte, benchKeys)
	for i := range keys {
		keys[i] = make([]byte, 16)
		binary.BigEndian.PutUint64(keys[i], uint64(i)*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(keys[i][8:], uint64(i))
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

func BenchmarkFindSetBytes(b *testing.B) {
	keys := randomKeys()
	s := benchKV(b, codec.Bytes, keys)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		ref, v, t, _, err := s.Find(keys[i])
		if err != nil {
			b.Fatal(err)
		}
		s.Set(ref, v+1, t)
		if i++; i == benchKeys {
			i = 0
		}
	}
}

func BenchmarkFindSetString(b *testing.B) {
	var keys []string
	for _, k := range randomKeys() {
		keys = append(keys, string(k))
	}
	s := benchKV(b, codec.String, keys)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		ref, v, t, _, err := s.Find(keys[i])
		if err != nil {
			b.Fatal(err)
		}
		s.Set(ref, v+1, t)
		if i++; i == benchKeys {
			i = 0
		}
	}
}

func BenchmarkFindSetEncoded(b *testing.B) {
	keys := randomKeys()
	s := benchKV(b, codec.Bytes, keys)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		ref, v, t, _, err := s.FindBytes(keys[i])
		if err != nil {
			b.Fatal(err)
		}
		s.Set(ref, v+1, t)
		if i++; i == benchKeys {
			i = 0
		}
	}
}

// Each round is a mark and a change, as a record with a savepoint is, and each
// 10,000 rounds a commit.
func BenchmarkMarkFindSetCommit(b *testing.B) {
	keys := randomKeys()
	d, s := benchDB(b, codec.Bytes, keys)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		d.Mark()
		ref, v, t, _, err := s.FindBytes(keys[i])
		if err != nil {
			b.Fatal(err)
		}
		s.Set(ref, v+1, t)
		if i++; i%10_000 == 0 {
			d.Committed(func(*state.Part) (int64, bool) { return 0, false })
		}
		if i == benchKeys {
			i = 0
		}
	}
}

func BenchmarkPersist100k(b *testing.B) {
	keys := randomKeys()
	d, s := benchDB(b, codec.Bytes, keys)
	b.ReportAllocs()
	pos := int64(0)
	for b.Loop() {
		for _, k := range keys {
			_ = s.Put(k, pos, pos)
		}
		pos++
		d.Committed(func(*state.Part) (int64, bool) { return pos, true })
		w := d.Persist()
		d.Persisted(w, w.Commit())
	}
}
