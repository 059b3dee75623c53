package txn

import (
	"context"
	"errors"
	"fmt"

	"github.com/semelstream/semel/internal/assert"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// End commits or aborts the open transaction, if one is open. A commit comes
// after Prepare, with nothing in between. An abort first waits for the
// records that are on their way.
//
// The error of a commit that may have happened wraps [ErrUnknownOutcome]: a
// new Producer's Init and the stable offsets of [Committed] then say what is
// true. An abort that failed is safe: nothing was or will be committed.
func (p *Producer) End(ctx context.Context, commit bool) error {
	if err := p.usable(); err != nil {
		return err
	}
	if !p.open {
		return nil
	}
	if commit {
		assert.That(p.prepared, "commit of transaction %s without Prepare", p.id)
	} else if err := p.settle(ctx); err != nil {
		return p.fail(err)
	}
	if err := p.sameProducer(ctx); err != nil {
		return p.fail(err)
	}
	p.learn()
	if err := p.endClient(ctx, commit); err != nil {
		return p.fail(err)
	}
	p.open, p.prepared, p.produced = false, false, 0
	p.added, p.last, p.committed = p.last, p.added, commit
	clear(p.added)
	return nil
}

// endClient has the client send EndTxn, and believes its log rather than its
// word.
func (p *Producer) endClient(ctx context.Context, commit bool) error {
	p.witness.forget()
	if err := p.cl.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return endError(p.id, commit, err)
	}
	if !commit {
		return nil
	}
	return p.witness.committed(p.id)
}

// settle waits for the records of a transaction to be aborted. They cannot be
// dropped instead: one that arrived after EndTxn would be an error of the next
// transaction.
func (p *Producer) settle(ctx context.Context) error {
	if p.produced == 0 {
		return fmt.Errorf("txn: abort %s: %w", p.id, ErrEmpty)
	}
	if err := p.cl.Flush(ctx); err != nil {
		return fmt.Errorf("txn: abort %s: waiting for its records: %w", p.id, err)
	}
	if lost := p.lost.Load(); lost != nil {
		return fmt.Errorf("txn: abort %s: %w", p.id, lost)
	}
	return nil
}

// sameProducer makes sure that the client did not heal itself in between: what
// was added and prepared belongs to the epoch of begin. Nothing has been sent
// when it fails, so the transaction is not committed.
func (p *Producer) sameProducer(ctx context.Context) error {
	pid, epoch, err := p.cl.ProducerID(ctx)
	if err != nil {
		return fmt.Errorf("txn: end %s: %w", p.id, err)
	}
	if pid != p.pid || epoch != p.epoch {
		return fmt.Errorf("txn: end %s: %w: it began as producer %d epoch %d and is now %d epoch %d", p.id, kerr.InvalidProducerEpoch, p.pid, p.epoch, pid, epoch)
	}
	return nil
}

// endError says what is known after EndTxn failed. Even a refusal (fenced,
// invalid state) can be the answer to a repeated request whose first copy
// committed, so that only what was never sent counts as aborted.
func endError(id string, commit bool, err error) error {
	switch {
	case !commit:
		return fmt.Errorf("txn: abort %s: %w", id, err)
	case errors.Is(err, kerr.OperationNotAttempted):
		return fmt.Errorf("txn: commit %s: %w", id, err)
	}
	return fmt.Errorf("txn: commit %s: %w: %w", id, ErrUnknownOutcome, err)
}
