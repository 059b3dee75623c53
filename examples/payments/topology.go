package main

import (
	"errors"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

// A Payment moves Cents from its key, the payer, to Payee. An ID is used once
// by a payer: what comes again with the same ID is the same payment.
type Payment struct {
	ID    string
	Payee string
	Cents int64
}

// A Deposit brings Cents from outside to its key, an account. An ID is used
// once by an account, for payments and deposits alike.
type Deposit struct {
	ID    string
	Cents int64
}

// An Entry is one line of an account's ledger.
type Entry struct {
	ID      string // of the payment or deposit
	Other   string `json:",omitempty"` // the account on the other side; none of deposits
	Cents   int64  // negative for the payer
	Balance int64  // afterwards
}

// The topics of the program. Ledger has all that was done, in order for each
// account; Refused has the payments that were not.
var (
	Deposits = stream.NewTopic("deposits", codec.String, codec.JSON[Deposit]()) // keyed by account
	Payments = stream.NewTopic("payments", codec.String, codec.JSON[Payment]()) // keyed by payer
	Ledger   = stream.NewTopic("ledger", codec.String, codec.JSON[Entry]())     // keyed by account
	Refused  = stream.NewTopic("refused", codec.String, codec.JSON[Payment]())  // keyed by payer
)

// A posting is a change of an account that is on its way to it.
type posting struct {
	ID    string
	Other string `json:",omitempty"`
	Cents int64
}

// A book is what the processors share: all of an account's rows are in the
// task of its partition, which is the only one that changes them.
type book struct {
	balances stream.Store[string, int64]
	seen     stream.Store[codec.Two[string, string], int64] // by account and ID: when
	refused  stream.Output[string, Payment]
	credits  stream.Output[string, posting]
}

type entries = stream.Context[string, Entry]

// Topology takes a payment from the payer and sends it, through a repartition
// topic, to the payee's partition. In between it is in that topic and nowhere
// else: the transaction that lowers the one balance writes it, and the
// transaction that raises the other moves past it.
func Topology(b *stream.Builder) {
	k := &book{
		balances: b.Store("balances", codec.String, codec.Int64),
		seen:     b.Store("seen", codec.Pair(codec.String, codec.String), codec.Int64),
		refused:  b.Output[string, Payment]("refused"),
		credits:  b.Output[string, posting]("credits"),
	}
	deposits := b.Stream(Deposits).
		Process(k.deposit, stream.Name("deposit"), stream.Uses(k.balances, k.seen))
	debits := b.Stream(Payments).
		Process(k.pay, stream.Name("pay"), stream.Uses(k.balances, k.seen, k.refused, k.credits))
	received := k.credits.Stream().
		Repartition("credits").
		Process(k.credit, stream.Name("credit"), stream.Uses(k.balances))

	deposits.Merge(debits, received).To(Ledger)
	k.refused.Stream().To(Refused)
}

var errDeposit = errors.New("a deposit must bring something")

// deposit adds to an account. What is no deposit is the failure of its record,
// about which Config.OnError decides.
func (k *book) deposit(c *entries, r stream.Record[string, Deposit]) error {
	if r.Value.Cents <= 0 {
		return errDeposit
	}
	if again, err := k.isAgain(c, r.Key, r.Value.ID, r.Time.UnixMilli()); again || err != nil {
		return err
	}
	return k.post(c, r.WithValue(posting{ID: r.Value.ID, Cents: r.Value.Cents}))
}

// pay is the payer's side of a payment. A payment that was refused stays
// refused: sent again, with the same ID, it is the same payment.
func (k *book) pay(c *entries, r stream.Record[string, Payment]) error {
	p := r.Value
	if again, err := k.isAgain(c, r.Key, p.ID, r.Time.UnixMilli()); again || err != nil {
		return err
	}
	balance, _, err := k.balances.In(c).Get(r.Key)
	if err != nil {
		return err
	}
	if p.Cents <= 0 || p.Cents > balance || p.Payee == "" {
		return k.refused.Emit(c, r)
	}
	if err := k.post(c, r.WithValue(posting{p.ID, p.Payee, -p.Cents})); err != nil {
		return err
	}
	return k.credits.Emit(c, r.WithKey(p.Payee).WithValue(posting{p.ID, r.Key, p.Cents}))
}

// credit is the payee's side.
func (k *book) credit(c *entries, r stream.Record[string, posting]) error { return k.post(c, r) }

// post changes an account and writes it down.
func (k *book) post(c *entries, r stream.Record[string, posting]) error {
	p := r.Value
	balance, _, err := k.balances.In(c).Get(r.Key)
	if err != nil {
		return err
	}
	balance += p.Cents
	if err := k.balances.In(c).Put(r.Key, balance); err != nil {
		return err
	}
	return c.Emit(r.WithValue(Entry{p.ID, p.Other, p.Cents, balance}))
}

// isAgain says whether the account has used id before, and notes that it has
// now. Semel does each record once; this is for senders that send twice. IDs
// are kept for ever here: a timer that deletes old ones would bound them.
func (k *book) isAgain(c *entries, account, id string, now int64) (bool, error) {
	key := codec.Two[string, string]{First: account, Second: id}
	_, again, err := k.seen.In(c).Get(key)
	if again || err != nil {
		return again, err
	}
	return false, k.seen.In(c).Put(key, now)
}
