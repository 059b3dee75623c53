package runtime

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"go.uber.org/zap"

	"github.com/semelstream/semel/internal/seam"
)

// member is the loop of the membership: it hears of changes and hands them to
// the workers, at whose pace they happen.
func (a *App) member(ctx context.Context) error {
	for {
		ch, err := a.group.Next(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the end of ctx is a clean stop
			}
			return a.explainGroup(err)
		}
		a.revoke(ctx, ch)
		ch.Done()
		a.setReads(ch)
		if err := a.assign(ctx, ch.Assigned); err != nil {
			return err
		}
	}
}

// revoke takes tasks away. They leave the wanted sets first, whatever happens
// after: offsets are fenced by generation and not by partition, so that a
// revoked task that a reset opened again would have two owners. Then the
// workers are waited for, since the group keeps the tasks for us that long.
func (a *App) revoke(ctx context.Context, ch seam.Change) {
	if len(ch.Revoked) == 0 {
		return
	}
	var orders []*order
	for _, w := range a.workers {
		o := &order{kind: orderRevoke, lost: ch.Lost}
		for _, t := range ch.Revoked {
			if w.unwant(t) {
				o.tasks = append(o.tasks, t)
			}
		}
		if len(o.tasks) > 0 {
			w.post(o)
			orders = append(orders, o)
		}
	}
	a.log.Info("tasks taken away", zap.Stringers("tasks", ch.Revoked), zap.Bool("lost", ch.Lost))
	a.await(ctx, orders, revokeWait)
	if h := a.cfg.Hooks.Tasks; h != nil {
		if ch.Lost {
			h(nil, nil, names(ch.Revoked))
		} else {
			h(nil, names(ch.Revoked), nil)
		}
	}
	a.updateState()
}

// revokeWait bounds how long a revocation waits for the workers. The group
// goes on without us a little later; what a worker commits then is refused by
// its generation.
const revokeWait = 55 * time.Second

// await waits until the workers have done the orders, at most for d.
func (a *App) await(ctx context.Context, orders []*order, d time.Duration) {
	until := a.env.Clock.Now().Add(d)
	for {
		if !slices.ContainsFunc(orders, func(o *order) bool { return !a.isDone(o) }) {
			return
		}
		left := until.Sub(a.env.Clock.Now())
		if left <= 0 {
			a.log.Warn("workers did not meet a change of tasks in time")
			return
		}
		a.signal.Wait(context.WithoutCancel(ctx), min(left, time.Second))
	}
}

func (a *App) isDone(o *order) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return o.done
}

// assign gives tasks to workers: each to the one with the fewest, of equals
// the first, so that stateful ones spread.
func (a *App) assign(ctx context.Context, tasks []seam.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	if err := a.checkGrowth(ctx); err != nil {
		return err
	}
	slices.SortFunc(tasks, seam.Task.Compare)
	orders := make([]*order, len(a.workers))
	for _, t := range tasks {
		w := slices.MinFunc(a.workers, func(x, y *worker) int { return x.load() - y.load() })
		w.want(t)
		if orders[w.id] == nil {
			orders[w.id] = &order{kind: orderAssign}
		}
		orders[w.id].tasks = append(orders[w.id].tasks, t)
	}
	a.log.Info("tasks given", zap.Stringers("tasks", tasks))
	for i, o := range orders {
		if o != nil {
			a.workers[i].post(o)
		}
	}
	if h := a.cfg.Hooks.Tasks; h != nil {
		h(names(tasks), nil, nil)
	}
	a.updateState()
	return nil
}

func names(tasks []seam.Task) []string {
	out := make([]string, len(tasks))
	for i, t := range tasks {
		out[i] = t.String()
	}
	return out
}

// explainGroup says what a group that cannot be joined means.
func (a *App) explainGroup(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, kerr.FencedInstanceID) {
		return fault("INSTANCE", "another process has taken this instance's place in the group",
			"group "+a.cfg.App+", instance "+a.cfg.Instance, err,
			"stop one of the two: each process needs an InstanceID and a StateDir of its own")
	}
	if e := a.explain(err); e != err && errors.Is(err, kerr.GroupAuthorizationFailed) { //nolint:errorlint // it had something to say
		return e
	}
	return fault("GROUP", "the consumer group cannot be joined", "group "+a.cfg.App, err,
		"see whether another kind of application uses this app id, and whether the ACLs allow Read on the group")
}
