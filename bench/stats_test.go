package main

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestQuantilesAreValuesThatWereMeasured(t *testing.T) {
	var d []time.Duration
	for i := 1000; i > 0; i-- {
		d = append(d, time.Duration(i)*time.Millisecond)
	}
	want := quantiles{1000, 500, 900, 990, 999, 1000}
	if got := quantilesOf(d); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := quantilesOf([]time.Duration{3 * time.Millisecond}); got != (quantiles{1, 3, 3, 3, 3, 3}) {
		t.Errorf("of one: %v", got)
	}
	if got := quantilesOf(nil); got != (quantiles{}) {
		t.Errorf("of none: %v", got)
	}
}

func TestSpreads(t *testing.T) {
	v := []float64{5, 1, 3}
	if got := spreadOf(v); got != (spread{3, 1, 5}) {
		t.Errorf("got %v", got)
	}
	if !slices.Equal(v, []float64{5, 1, 3}) {
		t.Error("the sample was sorted in place, and pairs are lost")
	}
	if got := spreadOf([]float64{4, 1, 2, 3}); got != (spread{2.5, 1, 4}) {
		t.Errorf("of an even number: %v", got)
	}
	if got := spreadOf(nil).Median; !math.IsNaN(got) {
		t.Errorf("of none: %v", got)
	}
	if got := (spread{2, 1, 3}).format("%.1f"); got != "2.0 [1.0..3.0]" {
		t.Errorf("got %q", got)
	}
}

// A slow round is slow for both, and does not move the ratio.
func TestRatiosArePairedByRound(t *testing.T) {
	got := ratios([]float64{100, 10, 90}, []float64{200, 20, 100})
	if !slices.Equal(got, []float64{.5, .5, .9}) {
		t.Errorf("got %v", got)
	}
}

func TestTheErrorOfAMean(t *testing.T) {
	if mean, err := meanOf([]float64{1, 2, 3, 4}); mean != 2.5 || math.Abs(err-0.6455) > 1e-4 {
		t.Errorf("got %v ± %v, want 2.5 ± 0.6455", mean, err)
	}
	if mean, err := meanOf([]float64{3}); mean != 3 || !math.IsNaN(err) {
		t.Errorf("got %v ± %v of one value, want 3 and an unknown error", mean, err)
	}
}

func TestEverySecondRoundGoesBackwards(t *testing.T) {
	if got := slices.Concat(order(2, 0), order(2, 1)); !slices.Equal(got, []int{0, 1, 1, 0}) {
		t.Errorf("got %v, want ABBA", got)
	}
}

func TestAGoalThatWasNotMeasuredIsNotReached(t *testing.T) {
	for _, c := range []struct {
		g    goal
		want string
	}{
		{goal{want: .9, atLeast: true, got: .9}, "yes"},
		{goal{want: .9, atLeast: true, got: .89}, "NO"},
		{goal{want: 5, got: 5}, "yes"},
		{goal{want: 5, got: 5.1}, "NO"},
		{goal{want: 5, got: math.NaN()}, "not measured"},
		{goal{want: .9, atLeast: true, got: math.NaN()}, "not measured"},
	} {
		if got := c.g.reached(); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.g, got, c.want)
		}
	}
}

func TestTablesAlignTextsLeftAndNumbersRight(t *testing.T) {
	tab := &table{left: 1}
	tab.add("what", "n")
	tab.add("a", "1000")
	const want = "what     n\n----------\na     1000\n"
	if got := tab.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
