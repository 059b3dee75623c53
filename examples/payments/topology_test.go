package main

import (
	"testing"

	"github.com/semelstream/semel/stream/streamtest"
)

func TestX(t *testing.T) {
	d := streamtest.New(t, Topology, streamtest.Partitions(3))
	d.Put(Deposits, "ann", Deposit{"d1", 100})
	d.Put(Payments, "ann", Payment{"1", "bob", 70})
	d.Put(Payments, "ann", Payment{"1", "bob", 70})
	d.Put(Payments, "ann", Payment{"2", "bob", 70})
	for _, r := range d.Out(Ledger) {
		t.Log(r.Key, r.Value)
	}
	t.Log(d.Out(Refused), d.Topics())
	t.Log(d.Rows[string, int64]("balances"))
}
