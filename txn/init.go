package txn

import (
	"context"
	"time"

	"go.uber.org/zap"
)

// Init fences every other Producer with this id, aborts what the former one
// left open, and returns when that is decided. Markers of the former one's
// transaction that the brokers have lost are written, where [Producer.WithScope] says
// to look for them. It repeats what passes until ctx ends.
//
// It can block for long and must then be waited for, never avoided with
// another id: a transaction that touched a partition which takes no writes
// now (min.insync.replicas) holds its id until that partition is back. Init
// logs which id and which partitions.
func (p *Producer) Init(ctx context.Context) error {
	if err := p.usable(); err != nil {
		return err
	}
	stop := p.watchInit(ctx)
	defer stop()
	if err := p.initBoth(ctx); err != nil {
		return p.fail(err)
	}
	v, err := TransactionVersion(ctx, p.cl)
	if err != nil {
		return p.fail(err)
	}
	p.old = v < 2
	return nil
}

// watchInit reports now and then what Init waits for.
func (p *Producer) watchInit(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	start := time.Now()
	go func() {
		for wait := 2 * time.Second; sleep(ctx, wait) == nil; wait = min(2*wait, time.Minute) {
			f, err := p.look(ctx)
			if ctx.Err() != nil {
				return
			}
			p.log.Warn("waiting for InitProducerID: the last transaction with this id is not ended yet, or its coordinator or the leader of a partition is away",
				zap.Duration("waited", time.Since(start)), zap.String("state", f.state), zap.Strings("partitions", f.parts), zap.Error(err))
		}
	}()
	return stop
}

// look is describe with an end.
func (p *Producer) look(ctx context.Context) (former, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return describe(ctx, p.cl, p.id)
}
