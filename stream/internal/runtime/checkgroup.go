package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/semelstream/semel/internal/seam"
)

// checkGroup refuses a group that has only read what this topology does not
// read: it belongs to another application. To begin in its place would leave
// its work undone and fence it.
func (a *App) checkGroup(ctx context.Context) error {
	read, err := a.env.Broker.CommittedTopics(ctx, a.cfg.App)
	if err != nil {
		return fmt.Errorf("asking for the group's offsets: %w", err)
	}
	a.noteFirst(read)
	for _, t := range a.graph.Topics {
		if slices.ContainsFunc(read, t.Matches) {
			return nil
		}
		if t.Source && slices.Contains(read, t.FullName(a.cfg.App)) {
			return nil
		}
	}
	if len(read) == 0 {
		return nil
	}
	return fault("APP-ID", "the consumer group belongs to another topology: it has offsets, and none of a topic that is read here",
		"group "+a.cfg.App+", which has read "+strings.Join(read, ", "), ErrIncompatible,
		"choose another AppID; if this is the same application and its inputs were renamed, delete the group")
}

// checkStores refuses a state directory in which another topology's stores
// are, where this one's stores have nothing but the inputs were read before:
// to go on would be to go on without the state that belongs to the offsets.
// Stores that were renamed look like that, too.
func (j *prepareJob) checkStores() error {
	if j.t.db == nil {
		return nil
	}
	others := j.t.db.Others()
	if len(others) == 0 || !j.begunBefore() {
		return nil
	}
	var names []string
	for _, s := range j.t.stores {
		if s.source != nil || s.tp.Topic == "" || s.part.Position() > 0 {
			return nil
		}
		names = append(names, s.spec.Name)
	}
	return fault("APP-ID", "the state directory has stores of another topology, and this one's have no history although their inputs were read",
		fmt.Sprintf("task %s, which has %s and needs %s", j.t.id, strings.Join(others, ", "), strings.Join(names, ", ")), ErrIncompatible,
		"choose another AppID or StateDir; if a store was renamed, give it its old name; to begin without the state, delete the state directory")
}

// begunBefore says that some input was read.
func (j *prepareJob) begunBefore() bool {
	return j.found && slices.ContainsFunc(seam.SortedTPs(j.offsets), func(tp seam.TP) bool { return j.offsets[tp].At > 0 })
}
