package changelog_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/internal/seam"
)

// A fixture is a changelog that Kafka Streams 4.4.0 wrote, and the rows that it
// restored from it.
type fixture struct {
	What, Topic string
	Partitions  int32
	Config      map[string]string `json:"topic_configs"`
	Records     []fixtureRecord
	Final       []fixtureRecord
}

type fixtureRecord struct {
	Partition int32
	Offset    int64
	Key       string  `json:"key_hex"`
	Value     *string `json:"value_hex"`
	Ms        int64   `json:"ts"`
}

func (f fixtureRecord) record(t *testing.T, topic string) *kgo.Record {
	r := &kgo.Record{Topic: topic, Partition: f.Partition, Offset: f.Offset, Timestamp: time.UnixMilli(f.Ms), Key: unhex(t, f.Key)}
	if f.Value != nil {
		r.Value = unhex(t, *f.Value)
	}
	return r
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func fixtures(t *testing.T) map[string]fixture {
	t.Helper()
	all := map[string]fixture{}
	for _, name := range []string{"kv-count", "kv-aggregate-delete", "kv-headers"} {
		b, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var f fixture
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		all[name] = f
	}
	return all
}

// recorded is a Source of records with offsets of their own.
type recorded struct {
	*fakeSource
	recs map[seam.TP][]*kgo.Record
}

func (s recorded) batch(b []changelog.Batch) []changelog.Batch {
	for tp, recs := range s.recs {
		if _, ok := s.at[tp]; ok {
			b = append(b, changelog.Batch{TP: tp, Records: recs, Next: recs[len(recs)-1].Offset + 1})
		}
	}
	return b
}

func TestChangelogsOfKafkaStreamsGiveItsRows(t *testing.T) {
	for name, f := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			s := recorded{newSource(), map[seam.TP][]*kgo.Record{}}
			s.mangle = s.batch
			for _, fr := range f.Records {
				tp := seam.TP{Topic: f.Topic, Partition: fr.Partition}
				s.logs[tp] = parse("")
				s.recs[tp] = append(s.recs[tp], fr.record(t, f.Topic))
			}
			want := map[int32]rows{}
			for p := range f.Partitions {
				want[p] = rows{}
			}
			for _, fr := range f.Final {
				want[fr.Partition].put(fr.record(t, f.Topic))
			}
			for tp, recs := range s.recs {
				to := newPart(t)
				j := job(to, 0, recs[len(recs)-1].Offset+1)
				j.TP = tp
				if err := restore(t, s.fakeSource, j); err != nil {
					t.Fatal(err)
				}
				wantRows(t, to, want[tp.Partition].String())
			}
		})
	}
}

// What a Writer logs for the same changes is the same records, in a topic of
// the same name and settings.
func TestChangelogsAreWrittenAsKafkaStreamsWritesThem(t *testing.T) {
	f := fixtures(t)["kv-count"]
	x := &tx{}
	for _, fr := range f.Records {
		r := fr.record(t, f.Topic)
		if err := changelog.NewWriter(seam.TP{Topic: f.Topic, Partition: r.Partition}).Log(x, r.Key, r.Value, fr.Ms); err != nil {
			t.Fatal(err)
		}
		got := x.recs[len(x.recs)-1]
		if got.Topic != r.Topic || got.Partition != r.Partition || string(got.Key) != string(r.Key) || string(got.Value) != string(r.Value) ||
			!got.Timestamp.Equal(r.Timestamp) || len(got.Headers) > 0 {
			t.Fatalf("wrote %v, want %v", got, r)
		}
	}
	s := changelog.Spec("fmt-agg", "kvcount", f.Partitions, -1, nil)
	for k, v := range f.Config {
		if s.Config[k] != v || len(s.Config) != len(f.Config) {
			t.Errorf("settings are %v, want %v", s.Config, f.Config)
		}
	}
	if s.Name != f.Topic {
		t.Errorf("the topic is %s, want %s", s.Name, f.Topic)
	}
}
