package runtime

import (
	"maps"
	"slices"

	"github.com/semelstream/semel/internal/seam"
)

// An order is what a worker is told to do. It meets it between records, at
// its own pace, and says so by done.
type order struct {
	kind  orderKind
	tasks []seam.Task
	lost  bool // of revokes: others may own the tasks already, so no commit
	done  bool // guarded by App.mu

	job     *prepareJob // of orderPrepared
	written *writeBack  // of orderWritten
}

type orderKind uint8

const (
	orderAssign   orderKind = iota // the wanted set has grown
	orderRevoke                    // give up tasks
	orderPrepared                  // a task's offsets and stores are ready, or failed
	orderWritten                   // committed rows are on disk, or failed
	orderCommit                    // commit what is in hand
	orderStop                      // commit and end
	orderPause                     // look whether the app is paused
)

// post puts an order into the worker's inbox and wakes it. Any goroutine may
// call it.
func (w *worker) post(o *order) {
	w.mu.Lock()
	dead, txn := w.dead, w.txn
	if !dead {
		w.inbox = append(w.inbox, o)
	}
	w.mu.Unlock()
	if dead {
		w.app.finished(o)
		return
	}
	if txn != nil {
		txn.Wake()
	}
	w.signal.Notify()
}

// take empties the inbox.
func (w *worker) take() []*order {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.inbox
	w.inbox = nil
	return out
}

func (a *App) finished(o *order) {
	a.mu.Lock()
	o.done = true
	a.mu.Unlock()
	a.signal.Notify()
}

// The wanted set is what the group gave to this worker. It is changed by the
// membership alone, at once; the tasks that are open follow it.

func (w *worker) want(t seam.Task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted[t] = true
}

func (w *worker) unwant(t seam.Task) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := w.wanted[t]
	if mutant != keepRevoked {
		delete(w.wanted, t)
	}
	return had
}

func (w *worker) load() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wanted)
}

// missing are the wanted tasks that are not open, in order. One that is still
// being closed after a revocation is opened when that is done.
func (w *worker) missing() []seam.Task {
	w.mu.Lock()
	wanted := sortedTasks(w.wanted)
	w.mu.Unlock()
	return slices.DeleteFunc(wanted, func(t seam.Task) bool {
		_, leaving := w.leaving[t]
		return leaving || w.tasks[t] != nil
	})
}

func sortedTasks[V any](m map[seam.Task]V) []seam.Task {
	return slices.SortedFunc(maps.Keys(m), seam.Task.Compare)
}
