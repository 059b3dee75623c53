package stream

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/codec"
)

// A loggedRecord is a record of a changelog that Kafka Streams 4.4.0 wrote.
type loggedRecord struct {
	Partition int
	Key       string  `json:"key_hex"`
	Value     *string `json:"value_hex"`
	Ms        int64   `json:"ts"`
}

// logged are the records of partition 0 in a changelog in testdata.
func logged(t *testing.T, name string) (recs []loggedRecord) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Records []loggedRecord }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Records {
		if r.Partition == 0 {
			recs = append(recs, r)
		}
	}
	if len(recs) == 0 {
		t.Fatalf("%s: no records", name)
	}
	return recs
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWaitingRecordsHaveTheBytesOfKafkaStreams(t *testing.T) {
	for _, name := range []string{"join-left-shared", "join-outer-shared"} {
		for _, r := range logged(t, name) {
			key := unhex(t, r.Key)
			ms, side, inner, err := readWaitKey(key)
			if err != nil {
				t.Fatal(err)
			}
			again, err := appendWaitKey(nil, ms, side, codec.Bytes, inner)
			if err != nil || !bytes.Equal(again, key) {
				t.Errorf("%s: key %x became %x (%v)", name, key, again, err)
			}
			if r.Value == nil {
				continue
			}
			list, err := readWaiters(nil, side, unhex(t, *r.Value))
			if err != nil || len(list) == 0 {
				t.Fatalf("%s: %d records, %v", name, len(list), err)
			}
			if got := hex.EncodeToString(appendWaiters(nil, side, list)); got != *r.Value {
				t.Errorf("%s: list %s became %s", name, *r.Value, got)
			}
		}
	}
}

func TestWaitingRecordsKeepValuesAndHeaders(t *testing.T) {
	blob := rapid.SliceOfN(rapid.Byte(), 0, 5)
	header := rapid.Custom(func(t *rapid.T) Header {
		h := Header{Name: rapid.StringN(0, 3, 6).Draw(t, "name")}
		if rapid.Bool().Draw(t, "null") {
			return h
		}
		h.Value = append([]byte{}, blob.Draw(t, "header")...)
		return h
	})
	rapid.Check(t, func(t *rapid.T) {
		side := byte(rapid.IntRange(0, 1).Draw(t, "side"))
		var list []waiter
		for range rapid.IntRange(0, 4).Draw(t, "records") {
			w := waiter{value: append([]byte{}, blob.Draw(t, "value")...)}
			if rapid.Bool().Draw(t, "has headers") {
				w.headers = rapid.SliceOfN(header, 1, 3).Draw(t, "headers")
			}
			list = append(list, w)
		}
		encoded := appendWaiters(nil, side, list)
		got, err := readWaiters(nil, side, encoded)
		if err != nil || !reflect.DeepEqual(got, list) {
			t.Fatalf("%v became %v (%v)", list, got, err)
		}
		if len(list) > 0 {
			if _, err := readWaiters(nil, side^1, encoded); err == nil {
				t.Fatal("the other side's list is read")
			}
		}
	})
}

func FuzzReadWaiters(f *testing.F) {
	f.Add(mark)
	f.Add(appendWaiters(nil, leftSide, []waiter{{value: []byte("a")}, {value: []byte{}, headers: Headers{{"h", nil}, {"", []byte("v")}}}}))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{1, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, src []byte) {
		list, err := readWaiters(nil, leftSide, src)
		if err != nil {
			return
		}
		again, err := readWaiters(nil, leftSide, appendWaiters(nil, leftSide, list))
		if err != nil || !reflect.DeepEqual(again, list) {
			t.Errorf("%x: %v became %v (%v)", src, list, again, err)
		}
	})
}
