package stream_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
)

// secret is what must be in no error and no log line.
const secret = "hunter2secret"

type order struct {
	ID   string
	At   time.Time
	Cost int
	Tags map[int]string
}

func TestNoErrorOrLogLineHasAKeyAValueOrAHeader(t *testing.T) {
	orders := stream.NewTopic("in", codec.String, codec.JSON[order]())
	out := stream.NewTopic("out", codec.String, codec.JSON[order]())
	good, _ := json.Marshal(order{ID: secret, Tags: map[int]string{1: secret}})
	bad := map[string][]byte{
		"no JSON":         []byte(secret),
		"cut off":         []byte(`{"ID":"` + secret),
		"wrong type":      []byte(`{"Cost":"` + secret + `"}`),
		"no number":       []byte(`{"Cost":` + secret + `}`),
		"no time":         []byte(`{"At":"` + secret + `"}`),
		"no key of a map": []byte(`{"Tags":{"` + secret + `":"x"}}`),
		"trailing":        []byte(`{}` + secret),
		"function":        good,
		"panic":           good,
		"large":           []byte(`{"ID":"` + secret + strings.Repeat("x", 5000) + `"}`),
	}
	for what, value := range bad {
		t.Run(what, func(t *testing.T) {
			for name, policy := range map[string]stream.ErrorPolicy{"fail": nil, "skip": stream.Skip, "dead letter": stream.DeadLetter("bad"), "no dead letter": stream.DeadLetter("missing")} {
				f := newFailing(t).topics(1, "in", "bad")
				f.w.CreateTopic("out", 1, map[string]string{"max.message.bytes": "2000"})
				if policy != nil {
					f.policy(policy)
				}
				f.start(func(b *stream.Builder) {
					b.Stream(orders).
						TryMapValues(func(o order) (order, error) {
							switch what {
							case "function":
								return o, errors.New("the order cannot be taken")
							case "panic":
								_ = []int{}[len(o.ID)]
							}
							return o, nil
						}).
						GroupByKey().Reduce("last", func(_, o order) order { return o }).To(out)
				})
				f.put("in", []byte(secret+"-key"), value, kgo.RecordHeader{Key: "h", Value: []byte(secret)})
				if policy == nil || name == "no dead letter" || what == "large" && name != "skip" {
					f.until("it stops", func() bool { return !f.p.Alive() })
					if text := fmt.Sprintf("%v %+v", f.p.Err(), f.p.Err()); strings.Contains(text, secret) {
						t.Errorf("policy %s: the error has a secret: %v", name, f.p.Err())
					}
				} else {
					f.processed()
				}
				if f.logs.has(secret) {
					t.Errorf("policy %s: the log has a secret:\n%s", name, f.logs)
				}
				for _, r := range f.w.Read(seam.TP{Topic: "bad"}, 0) {
					for _, h := range r.Headers {
						if strings.HasPrefix(h.Key, "__") && strings.Contains(string(h.Value), secret) {
							t.Errorf("policy %s: the dead letter's header %s has a secret", name, h.Key)
						}
					}
				}
			}
		})
	}
}
