package runtime

import "github.com/twmb/franz-go/pkg/kgo"

// Chunks are records that go from one goroutine to another: the slices go, and
// come back empty but not cleared. Each pointer that is copied or cleared has its
// price while the garbage collector runs, and what it points to is the arena's,
// which keeps it anyway.
type chunks struct {
	list [][]*kgo.Record
	n    int // records
}

// few is how many records are copied into the last chunk rather than make one.
const few = 64

// push takes records. It says if it has taken the slice too.
func (c *chunks) push(records []*kgo.Record) (taken bool) {
	if len(records) == 0 {
		return false
	}
	c.n += len(records)
	if last := len(c.list) - 1; last >= 0 && len(records) <= few {
		if into := c.list[last]; cap(into)-len(into) >= len(records) {
			c.list[last] = append(into, records...)
			return false
		}
	}
	c.list = append(c.list, records)
	return true
}

// A pool has empty chunks for the next records.
type pool struct{ empty [][]*kgo.Record }

// maxPool is how many chunks are kept.
const maxPool = 128

// get returns an empty chunk.
func (p *pool) get() []*kgo.Record {
	last := len(p.empty) - 1
	if last < 0 {
		return nil
	}
	c := p.empty[last]
	p.empty = p.empty[:last]
	return c
}

// put takes back the slices of c, whose records have gone.
func (p *pool) put(c *chunks) {
	for i, s := range c.list {
		if len(p.empty) < maxPool {
			p.empty = append(p.empty, s[:0])
		}
		c.list[i] = nil
	}
	c.list, c.n = c.list[:0], 0
}
