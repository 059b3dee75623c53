package kafka

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/semelstream/semel/internal/seam"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"pgregory.net/rapid"
)

func TestFactsAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := seam.Facts{
			Process: rapid.String().Draw(t, "process"),
			Addr:    rapid.String().Draw(t, "addr"),
			Workers: rapid.IntRange(0, 1000).Draw(t, "workers"),
			Lags: rapid.MapOf(rapid.Custom(func(t *rapid.T) seam.Task {
				return seam.Task{Sub: rapid.Int32Min(0).Draw(t, "sub"), Partition: rapid.Int32Min(0).Draw(t, "partition")}
			}), rapid.Int64()).Draw(t, "lags"),
		}
		b := encodeFacts(7, f)
		print, got, err := decodeFacts(b)
		if err != nil || print != 7 || got.Process != f.Process || got.Addr != f.Addr || got.Workers != f.Workers || !maps.Equal(got.Lags, f.Lags) {
			t.Fatalf("%+v, %v; want %+v", got, err, f)
		}
		if cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut"); true {
			if _, _, err := decodeFacts(b[:cut]); err == nil {
				t.Fatalf("cut off at %d of %d, and nothing was wrong", cut, len(b))
			}
		}
	})
}

func FuzzDecodeFacts(f *testing.F) {
	f.Add(encodeFacts(1, seam.Facts{Process: "p", Addr: "a:1", Workers: 3, Lags: map[seam.Task]int64{{Sub: 1, Partition: 2}: 3}}))
	f.Add([]byte{userDataVersion, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, b []byte) { _, _, _ = decodeFacts(b) })
}

func TestFingerprintsTellTopologiesApart(t *testing.T) {
	seen := map[uint64]string{}
	for _, subs := range [][]seam.Sub{
		nil,
		{{Topics: []string{"a"}, Tasks: 1}},
		{{Topics: []string{"a"}, Tasks: 2}},
		{{Topics: []string{"a"}, Tasks: 1, Stateful: true}},
		{{Topics: []string{"b"}, Tasks: 1}},
		{{Topics: []string{"a", "b"}, Tasks: 1}},
		{{Topics: []string{"ab"}, Tasks: 1}},
		{{Topics: []string{"a"}, Tasks: 1}, {Topics: []string{"b"}, Tasks: 1}},
	} {
		p := fingerprint(subs)
		if other, ok := seen[p]; ok {
			t.Fatalf("%v and %s", subs, other)
		}
		seen[p] = fmt.Sprint(subs)
	}
}

// table is a group as its leader sees it.
type table struct {
	*balancer
	members []kmsg.JoinGroupResponseMember
}

func newTable(t *testing.T, subs []seam.Sub) *table {
	b, err := newBalancer(seam.GroupConfig{Subs: subs}, zap.NewNop())
	ok(t, err)
	return &table{balancer: b}
}

func (x *table) join(id string, generation int32, owned map[string][]int32, f seam.Facts) {
	x.facts = func() seam.Facts { return f }
	m := kmsg.NewJoinGroupResponseMember()
	m.MemberID, m.InstanceID = id+"-uuid", &id
	m.ProtocolMetadata = x.JoinGroupMetadata(x.topics(), owned, generation)
	x.members = append(x.members, m)
}

// plan are the tasks by instance.
func (x *table) plan(t *testing.T) map[string][]seam.Task {
	mb, _, err := x.MemberBalancer(x.members)
	ok(t, err)
	into, err := mb.(kgo.GroupMemberBalancerOrError).BalanceOrError(nil)
	ok(t, err)
	out := map[string][]seam.Task{}
	for _, a := range into.IntoSyncAssignment() {
		parts, err := x.ParseSyncAssignment(a.MemberAssignment)
		ok(t, err)
		tasks := x.tasks(parts)
		for _, task := range tasks { // all its partitions or none
			for _, topic := range x.now().subs[task.Sub].Topics {
				if !slices.Contains(parts[topic], task.Partition) {
					t.Fatalf("%s has %v without %s", a.MemberID, task, topic)
				}
			}
		}
		out[a.MemberID[:len(a.MemberID)-len("-uuid")]] = tasks
	}
	return out
}

func TestATaskWaitsForWhoeverHoldsIt(t *testing.T) {
	subs := []seam.Sub{{Topics: []string{"a", "b"}, Tasks: 4}}
	x := newTable(t, subs)
	x.join("i1", 3, map[string][]int32{"a": {0, 1, 2, 3}, "b": {0, 1, 2, 3}}, seam.Facts{})
	x.join("i2", -1, nil, seam.Facts{})
	got := x.plan(t)
	if len(got["i1"]) != 2 || len(got["i2"]) != 0 {
		t.Fatal(got)
	}
	// The first one gave up two: the next plan gives them to the second.
	kept := map[string][]int32{}
	for _, task := range got["i1"] {
		kept["a"], kept["b"] = append(kept["a"], task.Partition), append(kept["b"], task.Partition)
	}
	y := newTable(t, subs)
	y.join("i1", 4, kept, seam.Facts{})
	y.join("i2", 4, nil, seam.Facts{})
	again := y.plan(t)
	if !slices.Equal(again["i1"], got["i1"]) || len(again["i2"]) != 2 {
		t.Fatal(again)
	}
}

// A topic that was added to a sub-topology is owned by nobody; its partition
// must not be given away ahead of the rest of the task.
func TestATaskIsNotTornWhenItsSubTopologyGrows(t *testing.T) {
	x := newTable(t, []seam.Sub{{Topics: []string{"a", "new"}, Tasks: 2}})
	x.join("i1", 3, map[string][]int32{"a": {0, 1}}, seam.Facts{})
	x.join("i2", -1, nil, seam.Facts{})
	if got := x.plan(t); len(got["i1"]) != 1 || len(got["i2"]) != 0 {
		t.Fatal(got)
	}
}

// Who missed rebalances claims what was given to another since: the newer
// claim is the truth, and the older one keeps nobody from it.
func TestTheNewestClaimWins(t *testing.T) {
	x := newTable(t, []seam.Sub{{Topics: []string{"a"}, Tasks: 2}})
	x.join("i1", 3, map[string][]int32{"a": {0, 1}}, seam.Facts{})
	x.join("i2", 5, map[string][]int32{"a": {0, 1}}, seam.Facts{})
	got := x.plan(t)
	if len(got["i2"]) != 1 {
		t.Fatal(got)
	}
	if len(got["i1"]) != 0 { // what moves back to it must be given up by i2 first
		t.Fatal(got)
	}
}

func TestFactsReachThePlan(t *testing.T) {
	x := newTable(t, []seam.Sub{{Topics: []string{"a"}, Tasks: 4, Stateful: true}})
	x.join("i1", -1, nil, seam.Facts{Workers: 3, Lags: map[seam.Task]int64{{Partition: 0}: 50}})
	x.join("i2", -1, nil, seam.Facts{Workers: 1, Lags: map[seam.Task]int64{{Partition: 0}: 5, {Partition: 3}: 4}})
	got := x.plan(t)
	if len(got["i1"]) != 3 || !slices.Equal(got["i2"], []seam.Task{{Partition: 3}}) {
		t.Fatal(got)
	}
}

func TestAMemberWhoseFactsCannotBeReadStillGetsTasks(t *testing.T) {
	x := newTable(t, []seam.Sub{{Topics: []string{"a"}, Tasks: 2}})
	x.join("i1", -1, nil, seam.Facts{})
	x.join("i2", -1, nil, seam.Facts{})
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.UserData = 3, []string{"a"}, []byte{userDataVersion + 1, 1, 2, 3}
	x.members[1].ProtocolMetadata = m.AppendTo(nil)
	if got := x.plan(t); len(got["i1"]) != 1 || len(got["i2"]) != 1 {
		t.Fatal(got)
	}
}
