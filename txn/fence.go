package txn

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FenceStrangers ends the open transactions of producers that are gone: of
// all transactional ids with the prefix that have an ongoing transaction,
// those for which alive is false are fenced, which aborts the transaction in
// milliseconds instead of at its timeout. It returns the ids it fenced, also
// with an error.
//
// Who is called dead by mistake loses its open transaction and its Producer,
// never a record.
func FenceStrangers(ctx context.Context, cl *kgo.Client, scope Scope, prefix string, alive func(id string) bool) (fenced []string, err error) {
	var ids []string
	err = again(ctx, "txn: ListTransactions", func() (err error) {
		ids, err = ongoing(ctx, cl, prefix)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if alive(id) {
			continue
		}
		if err := Fence(ctx, cl, scope, id); err != nil {
			return fenced, err
		}
		fenced = append(fenced, id)
	}
	return fenced, nil
}

// FenceAll fences all transactional ids for which match is true, those without
// an open transaction too: whoever writes with one of them writes nothing more.
// It is for programs that are gone for good, and so wants the answer of every
// broker, repeating until ctx ends. It returns the ids it fenced, also with an
// error.
func FenceAll(ctx context.Context, cl *kgo.Client, scope Scope, match func(id string) bool) (fenced []string, err error) {
	var ids []string
	err = again(ctx, "txn: ListTransactions", func() (err error) {
		ids, _, err = listed(ctx, cl, kmsg.NewPtrListTransactionsRequest(), match)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := Fence(ctx, cl, scope, id); err != nil {
			return fenced, err
		}
		fenced = append(fenced, id)
	}
	return fenced, nil
}

// ongoing are the ids with the prefix that have an open transaction. One broker
// that is away hides what it coordinates until another broker took that over.
func ongoing(ctx context.Context, cl *kgo.Client, prefix string) ([]string, error) {
	req := kmsg.NewPtrListTransactionsRequest()
	req.StateFilters = []string{"Ongoing"}
	ids, answers, err := listed(ctx, cl, req, func(id string) bool { return strings.HasPrefix(id, prefix) })
	if answers == 0 && err != nil {
		return nil, err
	}
	return ids, nil
}

// listed asks all brokers for ids that match, and says how many answered. With
// an error some have not.
func listed(ctx context.Context, cl *kgo.Client, req *kmsg.ListTransactionsRequest, match func(id string) bool) (ids []string, answers int, first error) {
	for _, shard := range cl.RequestSharded(ctx, req) {
		err := shard.Err
		if err == nil {
			resp := shard.Resp.(*kmsg.ListTransactionsResponse)
			err = kerr.ErrorForCode(resp.ErrorCode)
			for _, t := range resp.TransactionStates {
				if match(t.TransactionalID) {
					ids = append(ids, t.TransactionalID)
				}
			}
		}
		if err == nil {
			answers++
		} else if first == nil {
			first = err
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), answers, first
}

// Fence takes the transactional id from whoever has it and aborts its open
// transaction: InitProducerID, repeated until the abort is decided. Its former
// owner can write nothing more. Markers of its last transaction that brokers have
// lost in scope are written.
func Fence(ctx context.Context, cl *kgo.Client, scope Scope, id string) error {
	err := settle(ctx, cl, scope, id)
	if err == nil {
		k := identity{id: id}
		err = again(ctx, "txn: fencing "+id, func() error { return k.init(ctx, cl) })
	}
	if errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) {
		return nil // somebody else took the id at the same moment: fenced as well
	}
	return err
}
