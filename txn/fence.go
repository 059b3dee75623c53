package txn

import (
	"context"
	"errors"
	"fmt"
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
func FenceStrangers(ctx context.Context, cl *kgo.Client, prefix string, alive func(id string) bool) (fenced []string, err error) {
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
		if err := Fence(ctx, cl, id); err != nil {
			return fenced, err
		}
		fenced = append(fenced, id)
	}
	return fenced, nil
}

// ongoing are the ids with the prefix that have an open transaction. It asks
// all brokers; one that is away hides what it coordinates until another broker
// took that over.
func ongoing(ctx context.Context, cl *kgo.Client, prefix string) ([]string, error) {
	req := kmsg.NewPtrListTransactionsRequest()
	req.StateFilters = []string{"Ongoing"}
	var ids []string
	var first error
	answers := 0
	for _, shard := range cl.RequestSharded(ctx, req) {
		err := shard.Err
		if err == nil {
			resp := shard.Resp.(*kmsg.ListTransactionsResponse)
			err = kerr.ErrorForCode(resp.ErrorCode)
			for _, t := range resp.TransactionStates {
				if strings.HasPrefix(t.TransactionalID, prefix) {
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
	if answers == 0 && first != nil {
		return nil, first
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// Fence takes the transactional id from whoever has it and aborts its open
// transaction: InitProducerID, repeated until the abort is decided. Its former
// owner can write nothing more.
//
// The markers of an aborted transaction are never written by hand
// (WriteTxnMarkers): on a transaction whose coordinator lives that loses
// records of a commit that reports success.
func Fence(ctx context.Context, cl *kgo.Client, id string) error {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID = &id
	req.TransactionTimeoutMillis = int32(timeout.Milliseconds())
	req.ProducerID, req.ProducerEpoch = -1, -1
	err := again(ctx, fmt.Sprintf("txn: fencing %s", id), func() error {
		resp, err := req.RequestWith(ctx, cl)
		if err != nil {
			return err
		}
		return withFix(kerr.ErrorForCode(resp.ErrorCode), id)
	})
	if errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) {
		return nil // somebody else took the id at the same moment: fenced as well
	}
	return err
}
