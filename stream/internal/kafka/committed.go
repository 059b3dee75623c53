package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

const (
	// fenceAfter is when a transaction that holds up the offsets is suspected
	// to be a dead one's: a live one that is committing takes milliseconds.
	fenceAfter = 20 * time.Millisecond
	// fenceAgain is when to look again: its owner may have been a member then.
	fenceAgain = 500 * time.Millisecond
)

// Committed waits for the offsets to be stable and fences who holds them up
// without being a member of the group: it cannot finish its transaction any
// more, and the broker would wait for its timeout.
func (a *admin) Committed(ctx context.Context, group, prefix string, tps []seam.TP) (seam.Offsets, error) {
	w := &waiting{admin: a, group: group, prefix: prefix, start: time.Now(), next: fenceAfter}
	return txn.Committed(ctx, a.cl, group, tps, func(int) { w.blocked(ctx) })
}

// waiting is one call of Committed that waits.
type waiting struct {
	*admin
	group, prefix string
	start         time.Time
	next          time.Duration // since start
	complained    bool
}

// blocked is called before each new try.
func (w *waiting) blocked(ctx context.Context) {
	since := time.Since(w.start)
	if since < w.next {
		return
	}
	fenced, err := w.fence(ctx)
	w.next = time.Since(w.start) + fenceAgain
	switch {
	case len(fenced) > 0:
		w.log.Info("fenced the open transactions of instances that are no members of the group",
			zap.String("group", w.group), zap.Strings("transactional ids", fenced), zap.Duration("waited", since))
	case err != nil && ctx.Err() == nil:
		w.log.Warn("could not fence what holds up the committed offsets; still waiting", zap.String("group", w.group), zap.Error(err))
	case since > complainAfter && !w.complained:
		w.complained = true
		w.complain(ctx, since)
	}
}

// complain is called once, when an unfinished transaction of somebody else's is all
// that is left to wait for, or a marker that was lost.
func (w *waiting) complain(ctx context.Context, since time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, complainAfter) // a partition may be without a leader for long
	defer cancel()
	wrote, err := txn.WriteLostMarkers(ctx, w.cl, w.scope(w.group), func(id string) bool { return strings.HasPrefix(id, w.prefix) })
	what := "a transaction of a living member, or of another application, holds up the committed offsets; still waiting"
	switch {
	case len(wrote) > 0 && err == nil:
		return
	case errors.Is(err, txn.ErrLostMarkers):
		what = "markers that brokers have lost hold up the committed offsets; still waiting"
	}
	w.log.Warn(what, zap.String("group", w.group), zap.Duration("waited", since), zap.Error(err))
}

// scope is where an app's transactions write.
func (a *admin) scope(group string) txn.Scope {
	return txn.Scope{Group: group, Topics: a.cfg.Topics, Logger: a.log}
}

func (w *waiting) fence(ctx context.Context) ([]string, error) {
	members, err := w.instances(ctx, w.group)
	if err != nil {
		return nil, err
	}
	return txn.FenceStrangers(ctx, w.cl, w.scope(w.group), w.prefix, func(id string) bool {
		instance, ok := instanceOf(id, w.prefix)
		return !ok || members[instance] // what is not ours is left alone
	})
}

// instanceOf takes the instance out of <prefix><instance>-<worker>, or of the
// other ids of such a worker, which end in "-b" and "-offsets".
func instanceOf(id, prefix string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSuffix(strings.TrimSuffix(id, "-offsets"), secondSuffix), prefix)
	if !ok {
		return "", false
	}
	i := strings.LastIndexByte(rest, '-')
	if i <= 0 || i == len(rest)-1 || strings.Trim(rest[i+1:], "0123456789") != "" {
		return "", false
	}
	return rest[:i], true
}

// instances are the static members of a group.
func (a *admin) instances(ctx context.Context, group string) (map[string]bool, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups = []string{group}
	resp, err := req.RequestWith(ctx, a.cl)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool)
	for _, g := range resp.Groups {
		if g.Group != group {
			continue
		}
		if err := kerr.ErrorForCode(g.ErrorCode); err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return nil, fmt.Errorf("members of group %s: %w", group, err)
		}
		for _, m := range g.Members {
			if m.InstanceID != nil {
				out[*m.InstanceID] = true
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("members of group %s: the broker did not answer for it", group)
}
