package runtime

import (
	"slices"
	"sync/atomic"

	"github.com/semelstream/semel/internal/seam"
)

// A TaskInfo is a task as [App.Tasks] saw it.
type TaskInfo struct {
	ID         seam.Task
	Restoring  bool
	StreamTime int64             // ms since 1970, or NoTime
	Lag        map[seam.TP]int64 // records behind, by input, as far as is known from what was fetched; nil while it is restoring
}

// seen is what of a task others may read: its numbers at the last turn of its worker.
type seen struct {
	streamTime atomic.Int64
	lags       []atomic.Int64 // by input
}

// note writes down what others may read.
func (t *task) note() {
	t.seen.streamTime.Store(t.streamTime)
	for i, in := range t.inputs {
		at, _ := in.position()
		t.seen.lags[i].Store(max(in.stable-at, 0))
	}
}

// Tasks are the tasks of this process, in order. Any goroutine may call it.
func (a *App) Tasks() []TaskInfo {
	a.mu.Lock()
	workers := a.workers
	a.mu.Unlock()
	var out []TaskInfo
	for _, w := range workers {
		w.mu.Lock()
		wanted := sortedTasks(w.wanted)
		w.mu.Unlock()
		for _, id := range wanted {
			out = append(out, a.taskInfo(id))
		}
	}
	slices.SortFunc(out, func(x, y TaskInfo) int { return x.ID.Compare(y.ID) })
	return out
}

func (a *App) taskInfo(id seam.Task) TaskInfo {
	a.mu.Lock()
	t := a.active[id]
	a.mu.Unlock()
	if t == nil {
		return TaskInfo{ID: id, Restoring: true, StreamTime: NoTime}
	}
	info := TaskInfo{ID: id, StreamTime: t.seen.streamTime.Load(), Lag: map[seam.TP]int64{}}
	for i, in := range t.inputs {
		info.Lag[in.tp] = t.seen.lags[i].Load()
	}
	return info
}
