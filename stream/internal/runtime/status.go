package runtime

import "go.uber.org/zap"

// State is what the app is doing now.
func (a *App) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

func (a *App) setState(to State) {
	a.mu.Lock()
	from := a.state
	a.state = to
	a.mu.Unlock()
	if from == to {
		return
	}
	a.log.Info("state", zap.String("from", string(from)), zap.String("to", string(to)))
	if h := a.cfg.Hooks.State; h != nil {
		h(from, to)
	}
}

// updateState works out the state from the tasks: restoring while some wanted
// task does not run yet.
func (a *App) updateState() {
	wanted, running := 0, 0
	for _, w := range a.workers {
		wanted += w.load()
		running += int(w.running.Load())
	}
	switch {
	case running < wanted:
		a.setState(Restoring)
	case a.resting():
		a.setState(Paused)
	default:
		a.setState(Running)
	}
}
