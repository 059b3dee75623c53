package main

import (
	"strings"
	"testing"
)

// A story is what a ledger may say about one deposit and two payments.
type story struct {
	ledger  []line
	refused []payment
}

type line struct {
	account string
	Entry
}

func (s story) faults() []string {
	m := &market{
		deposits: map[id]Deposit{{"ann", "d"}: {"d", 100}},
		payments: map[id]Payment{{"ann", "1"}: {"1", "bob", 70}, {"ann", "2"}: {"2", "bob", 70}},
		total:    100,
	}
	j := newJudge(m)
	for _, l := range s.ledger {
		j.entry(l.account, l.Entry)
	}
	for _, p := range s.refused {
		j.refusal(p.payer, p.Payment)
	}
	return j.verdict()
}

func goodStory() story {
	return story{
		ledger: []line{
			{"ann", Entry{"d", "", 100, 100}},
			{"ann", Entry{"1", "bob", -70, 30}},
			{"bob", Entry{"1", "ann", 70, 70}},
		},
		refused: []payment{{"ann", Payment{"2", "bob", 70}}},
	}
}

func TestJudgeAcceptsAnExactLedger(t *testing.T) {
	if f := goodStory().faults(); len(f) > 0 {
		t.Error(f)
	}
}

func TestJudgeFindsEveryFault(t *testing.T) {
	for _, test := range []struct {
		name, want string
		spoil      func(*story)
	}{
		{"money lost on the way", "received 0 times", func(s *story) { s.ledger = s.ledger[:2] }},
		{"money made", "2 times, refused 0", func(s *story) {
			s.ledger = append(s.ledger, line{"bob", Entry{"1", "ann", 70, 140}})
		}},
		{"a payment done twice", "taken 2 times, received 2 times", func(s *story) {
			s.ledger[0].Cents, s.ledger[0].Balance, s.ledger[1].Balance = 140, 140, 70
			s.ledger = append(s.ledger, line{"ann", Entry{"1", "bob", -70, 0}}, line{"bob", Entry{"1", "ann", 70, 140}})
		}},
		{"a payment forgotten", "taken 0 times, received 0 times, refused 0 times", func(s *story) { s.refused = nil }},
		{"a payment refused twice", "refused 2 times", func(s *story) { s.refused = append(s.refused, s.refused[0]) }},
		{"a payment done and refused", "taken 1 times, received 1 times, refused 1 times", func(s *story) {
			s.refused = append(s.refused, payment{"ann", Payment{"1", "bob", 70}})
		}},
		{"an entry that does not follow", "add up to 30", func(s *story) { s.ledger[1].Balance = 31 }},
		{"an overdraft", "overdraws", func(s *story) {
			s.ledger[0].Cents, s.ledger[0].Balance, s.ledger[1].Balance = 50, 50, -20
		}},
		{"a deposit done twice", "deposit d was done 2 times", func(s *story) {
			s.ledger = append(s.ledger, line{"ann", Entry{"d", "", 100, 130}})
		}},
		{"a deposit of nobody", "nobody made the deposit x", func(s *story) {
			s.ledger = append(s.ledger, line{"bob", Entry{"x", "", 1, 71}})
		}},
		{"another amount", "nobody ordered payment 1 of 71", func(s *story) { s.ledger[1].Cents, s.ledger[1].Balance = -71, 29 }},
		{"another payee", "to eve", func(s *story) { s.ledger[2].account = "eve" }},
		{"a sum that is not the deposits'", "100 cents were paid in and 170 are there", func(s *story) {
			s.ledger = append(s.ledger, line{"bob", Entry{"1", "ann", 70, 140}})
		}},
	} {
		s := goodStory()
		test.spoil(&s)
		if got := strings.Join(s.faults(), "\n"); !strings.Contains(got, test.want) {
			t.Errorf("%s: got\n%s\nwant %q", test.name, got, test.want)
		}
	}
}
