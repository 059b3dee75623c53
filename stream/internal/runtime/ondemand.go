package runtime

import (
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
)

// Commit asks every worker to commit what it has in hand, and returns at once.
func (a *App) Commit() {
	for _, w := range a.workers {
		w.post(&order{kind: orderCommit})
	}
}

// Stores are the open stores of that name, by task; those of tasks that do not
// run yet are left out.
func (a *App) Stores(name string) map[seam.Task]*state.DB {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[seam.Task]*state.DB{}
	for id, db := range a.open {
		if db.Part(name) != nil {
			out[id] = db
		}
	}
	return out
}

func (a *App) opened(t *task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active[t.id] = t
	if t.db != nil {
		a.open[t.id] = t.db
	}
}

func (a *App) closed(t *task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.active, t.id)
	delete(a.open, t.id)
}
