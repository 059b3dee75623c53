package runtime

import (
	"context"
	"time"
)

// Pause has every worker commit what it has in hand and process nothing more:
// neither records nor timers. Tasks that come are restored and wait. It returns
// at once; State is Paused when all workers rest. It may be called before Run.
func (a *App) Pause() { a.setPaused(true) }

// Resume undoes Pause. Timers of the wall clock that came due fire once.
func (a *App) Resume() { a.setPaused(false) }

func (a *App) setPaused(paused bool) {
	a.paused.Store(paused)
	a.mu.Lock()
	workers := a.workers
	a.mu.Unlock()
	for _, w := range workers {
		w.post(&order{kind: orderPause})
	}
}

// rest is a turn of a worker that is paused. Orders are met all the same.
func (w *worker) rest(ctx context.Context) error {
	if err := w.commit(ctx); err != nil {
		return err
	}
	if !w.resting.Swap(true) {
		w.app.updateState()
	}
	w.persistDue()
	w.signal.Wait(ctx, time.Second)
	return ctx.Err()
}

// work on, if it rested.
func (w *worker) wakeUp() {
	if w.resting.Load() {
		w.resting.Store(false)
		w.app.updateState()
	}
}

// resting says that no worker processes anything.
func (a *App) resting() bool {
	for _, w := range a.workers {
		if !w.resting.Load() {
			return false
		}
	}
	return a.paused.Load()
}
