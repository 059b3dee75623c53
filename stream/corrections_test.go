package stream_test

import (
	"slices"
	"strings"
	"testing"
)

// The reference has faults. A trace that shows some names them in its defect,
// and the records that are wrong in theirs. corrections make of such a trace
// what is right here, by rules that hold for every trace with the same fault.
var corrections = map[string]func(*trace){
	"no-id-initial-as-old":        leaveOutTagged("no-id-initial-as-old"),
	"no-id-sliding-sent-twice":    leaveOutTagged("no-id-sliding-sent-twice"),
	"no-id-sliding-miscount":      asSliding,
	"no-id-late-not-dropped":      leaveOutTagged("no-id-late-not-dropped"), // see counted
	"no-id-cogroup-own-time":      asCogroup,
	"no-id-null-value-aggregated": nullsAsText,
	"no-id-lost-final":            withLostFinals,
	"no-id-session-equality":      asSessions,
	"no-id-second-final":          func(*trace) {}, // see laterFinals and asSessions, which hold for all of these shapes
	"no-id-null-key-crash":        goOnWithoutKey,
	"KAFKA-20413":                 ownHeaders,
	"KAFKA-16123":                 asJoined,
	"KAFKA-19536":                 asJoined,
	"no-id-late-unmatched":        asJoined,
}

// correct corrects tr; false says which fault has no rule.
func correct(tr *trace) (unknown string, ok bool) {
	if tr.Defect != nil {
		for _, id := range strings.Split(tr.Defect.ID, ", ") {
			rule, ok := corrections[id]
			if !ok {
				return id, false
			}
			rule(tr)
		}
	}
	if _, ok := newSessionModel(tr); ok && strings.Contains(tr.Topology, "suppress") {
		asSessions(tr)
	}
	if _, ok := newJoinModel(tr); ok {
		asJoined(tr) // also where the fault is not named: see joinModel.forgets
	}
	if _, ok := newCogroupModel(tr); ok {
		asCogroup(tr) // also where nothing is tagged: a late record may go on with a row that has not expired
	}
	laterFinals(tr)
	return "", true
}

// goOnWithoutKey has a record without a key answered at once, where the
// reference stopped. How things went on it does not know.
func goOnWithoutKey(tr *trace) {
	for i := range tr.Steps {
		if s := &tr.Steps[i]; s.Error != "" {
			s.Error = ""
			s.Out = []goldenRecord{{Topic: "out", Value: s.In.Value.(string) + "+null", Ts: s.In.Ts}}
		}
	}
	tr.Stores = nil
}

// leaveOutTagged takes out the records that show the fault and follow from
// nothing else.
func leaveOutTagged(id string) func(*trace) {
	return func(tr *trace) {
		for i := range tr.Steps {
			tr.Steps[i].Out = slices.DeleteFunc(tr.Steps[i].Out, func(o goldenRecord) bool { return o.Defect == id })
		}
	}
}

func TestEachFaultOfTheReferenceHasItsRule(t *testing.T) {
	for _, tr := range readTraces(t) {
		if id, ok := correct(&tr); !ok {
			t.Errorf("%s: no rule for %s", tr.Name, id)
		}
	}
}
