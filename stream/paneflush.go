package stream

import "github.com/semelstream/semel/internal/assert"

// flush tells what became of each window in the transaction, as that of a
// [windowUpdates] does, and in the same order.
func (p *paneUpdates[K, A]) flush() error {
	defer p.headers.forget()
	defer p.pending.forget()
	for order := p.pending.order; len(order) > 0; {
		n := 1
		for n < len(order) && order[n].key == order[0].key && order[n].start > order[n-1].start {
			n++
		}
		if err := p.flushKey(order[:n]); err != nil {
			return err
		}
		order = order[n:]
	}
	return nil
}

// flushKey tells of some windows of one key, in order of their starts.
func (p *paneUpdates[K, A]) flushKey(windows []pendingWindow) error {
	pending := &p.pending.keys[windows[0].key]
	key, err := p.key.Decode([]byte(pending.encoded))
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	first, last := windows[0].start, windows[len(windows)-1].start
	if err := p.load(&p.now, key, first, last, p.rows.Get); err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	if p.wantOld {
		if err := p.load(&p.was, key, first, last, p.rows.Before); err != nil {
			return p.o.rowsFailed(p.node, err)
		}
	}
	for _, w := range windows {
		row := p.now.window(w.start, p.w.inside(w.start))
		if i := pending.sealedAt(w.start); i >= 0 {
			row = pending.sealed[i]
		}
		var old paneRow[A]
		if p.wantOld {
			old = p.was.window(w.start, p.w.inside(w.start))
		}
		if err := p.flushWindow(windowed(key, w.start, p.w.end(w.start)), old, row); err != nil {
			return err
		}
	}
	return nil
}

func (p *paneUpdates[K, A]) flushWindow(key Windowed[K], old, row paneRow[A]) error {
	assert.That(row.ok, "%s: a window has changed and has no row", p.node.Name)
	headers, err := p.headers.of(key)
	if err != nil {
		return p.o.rowsFailed(p.node, err)
	}
	return p.o.settle(func() error {
		return p.out.change(change[Windowed[K], A]{
			key: key, old: old.v, new: row.v, hasOld: old.ok, hasNew: true, ms: row.ms, headers: headers,
		})
	})
}
