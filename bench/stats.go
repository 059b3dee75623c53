package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// quantiles are of durations, in milliseconds.
type quantiles struct {
	N                        int
	P50, P90, P99, P999, Max float64
}

// quantilesOf sorts d and reads the quantiles off: each is a value that was
// measured, not one between two.
func quantilesOf(d []time.Duration) quantiles {
	if len(d) == 0 {
		return quantiles{}
	}
	slices.Sort(d)
	at := func(q float64) float64 {
		i := int(math.Ceil(q*float64(len(d)))) - 1
		return float64(d[min(max(i, 0), len(d)-1)]) / float64(time.Millisecond)
	}
	return quantiles{len(d), at(.5), at(.9), at(.99), at(.999), at(1)}
}

// A spread is a sample: its median and its ends.
type spread struct {
	Median, Min, Max float64
}

// spreadOf leaves v as it is. The median of an even number is the mean of the
// middle two.
func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	s := slices.Clone(v)
	slices.SortFunc(s, cmp.Compare[float64])
	n := len(s)
	return spread{(s[(n-1)/2] + s[n/2]) / 2, s[0], s[n-1]}
}

// meanOf is the mean of v and its standard error, which is NaN for fewer than two.
func meanOf(v []float64) (mean, err float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x / n
	}
	var squares float64
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(squares / (n - 1) / n)
}

func (s spread) format(form string) string {
	if s.Min == s.Max {
		return fmt.Sprintf(form, s.Median)
	}
	return fmt.Sprintf(form+" ["+form+".."+form+"]", s.Median, s.Min, s.Max)
}

// ratios are a[i]/b[i]: of runs that stood next to each other, so that a slow
// minute of the machine is in both.
func ratios(a, b []float64) []float64 {
	var out []float64
	for i := range min(len(a), len(b)) {
		out = append(out, a[i]/b[i])
	}
	return out
}
