package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// measured has a meter see commits of so many records and returns its events.
func measured(t *testing.T, records int64, commits ...int64) []event {
	t.Helper()
	var out bytes.Buffer
	m := newMeter(spec{Records: records}, &events{out: &out})
	m.begin()
	for i, n := range commits {
		m.commit(n, time.Duration(i+1)*time.Millisecond)
	}
	m.end()
	var all []event
	for d := json.NewDecoder(&out); d.More(); {
		var e event
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func theResult(t *testing.T, all []event) *result {
	t.Helper()
	var r *result
	for _, e := range all {
		if e.Kind == eventResult {
			if r != nil {
				t.Error("there are two results")
			}
			r = e.Result
		}
	}
	if r == nil {
		t.Fatal("there is no result")
	}
	return r
}

func TestTheFirstQuarterIsLeftOut(t *testing.T) {
	r := theResult(t, measured(t, 100, 20, 10, 40, 30))
	if r.Records != 70 || r.Commits != 2 || r.Whole || r.Unsteady {
		t.Errorf("got %+v, want 70 records in 2 commits", r)
	}
	if r.Txn.P50 != 3 || r.Txn.Max != 4 {
		t.Errorf("transactions of the first quarter count: %+v", r.Txn)
	}
}

func TestARunOfOneTransactionIsMeasuredAsAWhole(t *testing.T) {
	r := theResult(t, measured(t, 100, 100))
	if r.Records != 100 || r.Commits != 1 || !r.Whole {
		t.Errorf("got %+v", r)
	}
}

func TestMoreThanThereIsIsNotSound(t *testing.T) {
	r := theResult(t, measured(t, 100, 50, 51))
	if err := r.sound(); err == nil {
		t.Errorf("%+v passes", r)
	}
	if err := theResult(t, measured(t, 100, 50, 50)).sound(); err != nil {
		t.Error(err)
	}
	for _, e := range measured(t, 100, 50, 50, 1) {
		if e.Kind == eventWarning {
			return
		}
	}
	t.Error("a commit after the last one is not told")
}

func TestAnAbortIsToldAndItsRecordsDoNotCount(t *testing.T) {
	var out bytes.Buffer
	m := newMeter(spec{Records: 10}, &events{out: &out})
	m.begin()
	m.OnTransaction(0, 10, time.Millisecond, errors.New("no"))
	if m.complete || m.aborts != 1 || !bytes.Contains(out.Bytes(), []byte(eventWarning)) {
		t.Errorf("complete %v, aborts %d, told %q", m.complete, m.aborts, out.Bytes())
	}
}

func TestStampsComeBack(t *testing.T) {
	due := time.Unix(5, 7)
	got, n, ok := readStamp(stamp(due, 42, 100))
	if !ok || !got.Equal(due) || n != 42 {
		t.Errorf("got %v, %d, %v", got, n, ok)
	}
	if _, _, ok := readStamp(value(1, 100)); ok {
		t.Error("a loaded value passes for a fed one")
	}
}
