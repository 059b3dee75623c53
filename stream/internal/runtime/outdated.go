package runtime

import (
	"fmt"
	"strconv"
	"time"

	"github.com/semelstream/semel/internal/seam"
)

// storedAt is the time of day of the last commit that a store on disk has,
// among its named times.
const storedAt = "semel.stored-at"

// deleteRetention is how long a compacted topic keeps tombstones if its
// delete.retention.ms does not say.
const deleteRetention = 24 * time.Hour

// outdated says why a store cannot go on from its position. The changelog
// keeps a tombstone for delete.retention.ms only: a store that was away for
// longer may miss some, and would keep rows for ever that were deleted. It is
// filled from the beginning then, a good while before that can be so.
func (a *App) outdated(t *task, s *taskStore) string {
	at, ok := t.db.Meta()[storedAt]
	if !ok || s.part.Position() == 0 {
		return ""
	}
	a.mu.Lock()
	topic := a.topics[s.tp.Topic]
	a.mu.Unlock()
	return missesDeletes(a.env.Clock.Now().Sub(time.UnixMilli(at)), topic)
}

// missesDeletes says why rows that were away for so long cannot go on.
func missesDeletes(away time.Duration, topic seam.Topic) string {
	keeps := deleteRetention
	if ms, err := strconv.ParseInt(topic.Config["delete.retention.ms"], 10, 64); err == nil {
		keeps = time.Duration(min(ms, int64(time.Duration(1<<62)/time.Millisecond))) * time.Millisecond
	}
	if away < keeps/4*3 {
		return ""
	}
	return fmt.Sprintf("the state on disk is %v old, and the changelog keeps deletes for %v only", away.Round(time.Second), keeps)
}
