package runtime

import (
	"testing"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream/internal/graph"
)

// A topic that follows is as wide as what it meets, whoever writes it: here
// the left side of a foreign-key join has 4 tasks, and the right side as many
// as the repartition topic that 3 tasks write.
func TestATopicThatFollowsHasThePartitionsOfWhatItMeets(t *testing.T) {
	left, raw := &graph.Topic{Name: "left", Source: true}, &graph.Topic{Name: "raw", Source: true}
	right := &graph.Topic{Name: "right", Internal: true, Source: true}
	register := &graph.Topic{Name: "registration", Internal: true, Whole: true, Follows: true, Source: true}
	answers := &graph.Topic{Name: "response", Internal: true, Whole: true, Follows: true, Source: true}
	g := &graph.Graph{
		Topics: []*graph.Topic{left, raw, right, register, answers},
		Subs: []*graph.Sub{
			{ID: 0, Sources: []*graph.Topic{left, answers}, Sinks: []*graph.Topic{register}, Copart: [][]*graph.Topic{{left, answers}}},
			{ID: 1, Sources: []*graph.Topic{register, right}, Sinks: []*graph.Topic{answers}, Copart: [][]*graph.Topic{{register, right}}},
			{ID: 2, Sources: []*graph.Topic{raw}, Sinks: []*graph.Topic{right}},
		},
	}
	a := &App{graph: g, topics: map[string]seam.Topic{"left": {Partitions: 4}, "raw": {Partitions: 3}}}
	a.cfg.App = "app"
	if err := a.countTasks(); err != nil {
		t.Fatal(err)
	}
	for topic, want := range map[*graph.Topic]int32{right: 3, register: 3, answers: 4} {
		if got := a.counts[topic]; got != want {
			t.Errorf("%s has %d partitions, want %d", topic.FullName("app"), got, want)
		}
	}
}
