package state

import "bytes"

// A course says which rows of a span a scan wants, and what of the span it can
// skip. It is not changed by scans.
type course interface {
	// look judges a key: whether its row is wanted, and if not, where to go on:
	// at the first key from jump on, backward at the last one before it. A nil
	// jump is the next key. It may use buf for jump.
	look(key []byte, backward bool, buf []byte) (want bool, jump []byte)
}

// A route is what a scan walks over.
type route struct {
	span
	course course // nil wants everything
	byTime bool   // keys are those of the order by time
}

// after is what of r lies behind key.
func (r route) after(key []byte) route {
	r.span = r.span.after(key)
	return r
}

// byStart are the keys from first to last, both included, in an order whose
// keys begin with a time: each time is looked at for them.
type byStart struct{ first, last []byte }

func (c byStart) look(key []byte, backward bool, buf []byte) (bool, []byte) {
	at, k := getTime(key), key[timeSize:]
	tooLow, tooHigh := bytes.Compare(k, c.first) < 0, bytes.Compare(k, c.last) > 0
	switch {
	case !tooLow && !tooHigh:
		return true, nil
	case tooLow && !backward:
		return false, append(addTime(buf, at), c.first...)
	case tooHigh && !backward:
		return false, append(addTime(buf, at+1), c.first...)
	case tooHigh:
		return false, append(append(addTime(buf, at), c.last...), 0)
	case at == 0:
		return false, append(buf, 0) // before it is nothing
	}
	return false, append(append(addTime(buf, at-1), c.last...), 0)
}

// inSegments are the keys between low and high in each segment that accept
// wants. Other keys may lie in between: longer ones that begin in the same way.
type inSegments struct {
	low, high []byte // behind the segment; high is excluded
	accept    func(key []byte) bool
}

func (c inSegments) look(key []byte, backward bool, buf []byte) (bool, []byte) {
	seg, rest := getTime(key), key[segmentSize:]
	below, above := bytes.Compare(rest, c.low) < 0, bytes.Compare(rest, c.high) >= 0
	switch {
	case !below && !above:
		return c.accept(key), nil
	case below && !backward:
		return false, append(addTime(buf, seg), c.low...)
	case above && !backward:
		return false, append(addTime(buf, seg+1), c.low...)
	case above:
		return false, append(addTime(buf, seg), c.high...)
	case seg == 0:
		return false, append(buf, 0)
	}
	return false, append(addTime(buf, seg-1), c.high...)
}

// accepting wants the keys that it accepts.
type accepting func(key []byte) bool

func (c accepting) look(key []byte, _ bool, _ []byte) (bool, []byte) { return c(key), nil }
