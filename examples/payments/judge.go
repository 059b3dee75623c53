package main

import "fmt"

// A judge reads what was committed and compares it with what was wanted.
type judge struct {
	m        *market
	balances map[string]int64 // by account, as its entries add up
	debits   map[id]int       // by payer and ID: how many entries
	credits  map[id]int
	refusals map[id]int
	deposits map[id]int
	done     int // payments
	refused  int
	faults   []string
}

func newJudge(m *market) *judge {
	return &judge{m: m, balances: map[string]int64{}, debits: map[id]int{}, credits: map[id]int{}, refusals: map[id]int{}, deposits: map[id]int{}}
}

func (j *judge) fault(form string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf(form, args...))
}

// entry takes the next line of an account's ledger. Each must follow from the
// one before, and be one side of something that was wanted.
func (j *judge) entry(account string, e Entry) {
	j.balances[account] += e.Cents
	if j.balances[account] != e.Balance {
		j.fault("%s: entry %s says the balance is %d, the entries up to it add up to %d", account, e.ID, e.Balance, j.balances[account])
	}
	if e.Balance < 0 {
		j.fault("%s: entry %s overdraws it to %d", account, e.ID, e.Balance)
	}
	switch {
	case e.Other == "":
		j.deposits[id{account, e.ID}]++
		if d, ok := j.m.deposits[id{account, e.ID}]; !ok || d.Cents != e.Cents {
			j.fault("%s: nobody made the deposit %s of %d", account, e.ID, e.Cents)
		}
	case e.Cents < 0:
		j.debits[id{account, e.ID}]++
		j.payment(id{account, e.ID}, e.Other, -e.Cents)
	default:
		j.credits[id{e.Other, e.ID}]++
		j.payment(id{e.Other, e.ID}, account, e.Cents)
	}
}

// payment checks an entry against the payment that it is one side of.
func (j *judge) payment(of id, payee string, cents int64) {
	if p, ok := j.m.payments[of]; !ok || p.Payee != payee || p.Cents != cents {
		j.fault("%s: nobody ordered payment %s of %d to %s", of.account, of.id, cents, payee)
	}
}

// refusal takes a refused payment.
func (j *judge) refusal(payer string, p Payment) {
	j.refusals[id{payer, p.ID}]++
	if want, ok := j.m.payments[id{payer, p.ID}]; !ok || want != p {
		j.fault("%s: nobody ordered the refused payment %s of %d to %s", payer, p.ID, p.Cents, p.Payee)
	}
}

// verdict returns what is wrong, after everything was read.
func (j *judge) verdict() []string {
	for of := range j.m.deposits {
		if n := j.deposits[of]; n != 1 {
			j.fault("%s: deposit %s was done %d times", of.account, of.id, n)
		}
	}
	for of, p := range j.m.payments {
		debits, credits, refusals := j.debits[of], j.credits[of], j.refusals[of]
		switch {
		case debits == 1 && credits == 1 && refusals == 0 && p.Cents > 0:
			j.done++
		case debits == 0 && credits == 0 && refusals == 1:
			j.refused++
		default:
			j.fault("%s: payment %s of %d was taken %d times, received %d times, refused %d times", of.account, of.id, p.Cents, debits, credits, refusals)
		}
	}
	if sum := j.sum(); sum != j.m.total {
		j.fault("%d cents were paid in and %d are there", j.m.total, sum)
	}
	return j.faults
}

// sum is the money in all accounts.
func (j *judge) sum() (cents int64) {
	for _, b := range j.balances {
		cents += b
	}
	return cents
}
