package stream

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/graph"
)

func TestWindowedKeysHaveKafkaStreamsBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		of   codec.Codec[Windowed[string]]
		w    Windowed[string]
		want string
	}{
		{"window", WindowKey(codec.String, 10*time.Second), windowed("k1", 1700000000000, 1700000010000),
			"k1\x00\x00\x01\x8b\xcf\xe5\x68\x00"},
		{"window without key bytes", WindowKey(codec.String, time.Second), windowed("", 0, 1000), "\x00\x00\x00\x00\x00\x00\x00\x00"},
		{"session", SessionKey(codec.String), windowed("k1", 1000, 9000), "k1\x00\x00\x00\x00\x00\x00\x23\x28\x00\x00\x00\x00\x00\x00\x03\xe8"},
		{"session of one record", SessionKey(codec.String), windowed("k1", 7, 7), "k1\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x07"},
	} {
		got, err := c.of.Append([]byte("before"), c.w)
		if err != nil || string(got) != "before"+c.want {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, c.want)
		}
		if back, err := c.of.Decode([]byte(c.want)); err != nil || back != c.w {
			t.Errorf("%s: came back as %v %v", c.name, back, err)
		}
	}
}

func TestAWindowThatReachesBeyondAllTimeEndsWithIt(t *testing.T) {
	w, err := windowKey[string]{codec.String, math.MaxInt64}.Decode([]byte("k\x00\x00\x00\x00\x00\x00\x00\x05"))
	if err != nil || w.End.UnixMilli() != math.MaxInt64 {
		t.Errorf("%v %v", w, err)
	}
}

func TestWindowedKeysRefuseWhatIsNone(t *testing.T) {
	window, session := WindowKey(codec.String, time.Second), SessionKey(codec.String)
	for _, src := range []string{"", "1234567", "k\xff\xff\xff\xff\xff\xff\xff\xff"} {
		if _, err := window.Decode([]byte(src)); !errors.Is(err, codec.ErrDecode) {
			t.Errorf("window %q: %v", src, err)
		}
	}
	for _, src := range []string{
		"12345678", "k\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02", // ends before it begins
		"k\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x02",
	} {
		if _, err := session.Decode([]byte(src)); !errors.Is(err, codec.ErrDecode) {
			t.Errorf("session %q: %v", src, err)
		}
	}
	before := []byte("before")
	for _, c := range []codec.Codec[Windowed[string]]{window, session} {
		if got, err := c.Append(before, Windowed[string]{Key: "k"}); !errors.Is(err, codec.ErrEncode) || !bytes.Equal(got, before) {
			t.Errorf("a window without times: %q %v", got, err)
		}
	}
	if _, err := session.Append(nil, windowed("k", 2, 1)); !errors.Is(err, codec.ErrEncode) {
		t.Errorf("a session that ends before it begins: %v", err)
	}
}

func TestWindowedKeysAreInTheUsersTopicsByKeyAndInOursWithTheWindow(t *testing.T) {
	key := []byte("k1\x00\x00\x00\x00\x00\x00\x23\x28\x00\x00\x00\x00\x00\x00\x03\xe8")
	users := &graph.Node{Topic: &graph.Topic{}}
	ours := &graph.Node{Topic: &graph.Topic{Internal: true}}
	for _, c := range []struct {
		n     *graph.Node
		codec any
		want  []byte
	}{
		{users, SessionKey(codec.String), key[:2]},
		{users, WindowKey(codec.String, time.Second), key[:10]},
		{ours, SessionKey(codec.String), key},
		{users, codec.String, key},
	} {
		if got := partBytes(c.n, c.codec)(key); !bytes.Equal(got, c.want) {
			t.Errorf("%T, ours %v: %q, want %q", c.codec, c.n.Topic.Internal, got, c.want)
		}
	}
}

func TestTheKeyInsideAWindowedKeyIsCopiedToBeKept(t *testing.T) {
	src := []byte("k1\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x07")
	for _, c := range []codec.Codec[Windowed[string]]{WindowKey(codec.String, time.Second), SessionKey(codec.String)} {
		of := bytes.Clone(src)
		w, err := c.Decode(of)
		if err != nil {
			t.Fatal(err)
		}
		w = c.(codec.Owner[Windowed[string]]).Own(w)
		of[0] = 'x'
		if w.Key[0] != 'k' {
			t.Errorf("%T: the key is a view", c)
		}
	}
}

// Whatever bytes are no refusal come back as they were.
func FuzzWindowedKeys(f *testing.F) {
	f.Add([]byte("k1\x00\x00\x01\x8b\xcf\xe5\x68\x00"))
	f.Add([]byte("k1\x00\x00\x00\x00\x00\x00\x23\x28\x00\x00\x00\x00\x00\x00\x03\xe8"))
	f.Add([]byte("\x7f\xff\xff\xff\xff\xff\xff\xff"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, c := range []codec.Codec[Windowed[string]]{WindowKey(codec.String, time.Minute), SessionKey(codec.String)} {
			w, err := c.Decode(src)
			if err != nil {
				if !errors.Is(err, codec.ErrDecode) {
					t.Fatalf("%T: %v", c, err)
				}
				continue
			}
			if w.End.Before(w.Start) {
				t.Fatalf("%T: %v", c, w)
			}
			if got, err := c.Append(nil, w); err != nil || !bytes.Equal(got, src) {
				t.Fatalf("%T: %x became %x, %v", c, src, got, err)
			}
		}
	})
}
