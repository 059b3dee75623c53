package runtime

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/changelog"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/graph"
)

// minSegment is the shortest segment of a windowed store, in ms: what has
// expired goes from disk a segment at a time.
const minSegment = 60_000

// changelogConfig is the configuration of a store's changelog. An input that is
// a table's changelog is the user's.
func changelogConfig(s *graph.Store) map[string]string {
	switch {
	case s.Source != nil:
	case s.Kind == graph.Window && (s.Duplicates || s.Once):
		return changelog.ExpiringDuplicates(s.Retain)
	case s.Kind == graph.Window, s.Kind == graph.Session:
		return changelog.Expiring(s.Retain)
	case s.Kind == graph.Versioned:
		return changelog.Versions(s.Retain)
	}
	return nil
}

// rowHeaders are the headers of each row in a store's changelog.
func rowHeaders(s *graph.Store) []kgo.RecordHeader {
	if s.Format == 0 {
		return nil
	}
	return []kgo.RecordHeader{{Key: "v", Value: []byte{s.Format}}}
}

// StoreSpec is how a store is laid out on its engine.
func StoreSpec(s *graph.Store) state.Spec {
	spec := state.Spec{Name: s.Name, Kind: state.KindKeyValue, ByTime: s.ByTime}
	switch s.Kind {
	case graph.Window:
		spec.Kind, spec.Segment = state.KindWindow, max(s.Retain/2, minSegment)
		switch {
		case s.ByKey || s.Duplicates:
			spec.Kind = state.KindWindowByKey
		case s.Once:
			spec.Kind = state.KindWindowOnce
		}
		// Rows in order of time have no need of a second order.
		spec.ByTime = s.ByTime && spec.Kind == state.KindWindowByKey
	case graph.Session:
		spec.Kind, spec.Segment = state.KindSession, max(s.Retain/2, minSegment)
	case graph.Versioned:
		spec.Kind, spec.History = state.KindVersioned, s.Retain
	}
	return spec
}
