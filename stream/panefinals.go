package stream

import (
	"math"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/state"
)

// sendPanes is sendAligned where rows are of panes: window by window, each made
// of its panes.
func (f *windowFinals[K, A]) sendPanes(closed int64) error {
	for start := f.w.onGrid(f.from()); 0 <= start && f.w.end(start) <= closed; start += f.w.every {
		pane, ok, err := firstStart(f.rows.ByStart(start, math.MaxInt64-1))
		if err != nil {
			return f.o.rowsFailed(f.node, err)
		}
		if start = max(start, f.w.first(pane)); !ok || f.w.end(start) > closed {
			break
		}
		if err := f.sendWindow(start); err != nil {
			return err
		}
	}
	f.next = f.w.nextEnd(closed)
	return nil
}

// firstStart is where the first row begins.
func firstStart[K, A any](rows state.WindowRows[K, A]) (start int64, ok bool, err error) {
	for row, err := range rows {
		return row.Start, err == nil, err
	}
	return 0, false, nil
}

// sendWindow sends the rows of the window that begins at start.
func (f *windowFinals[K, A]) sendWindow(start int64) error {
	run, err := f.windows.window(start)
	if err != nil {
		return f.o.rowsFailed(f.node, err)
	}
	end := f.w.end(start)
	_, views := f.kept.key.(codec.Owner[K])
	var block []byte
	for i := range run.rows {
		encoded := run.key(i)
		if views { // the run's memory is used again
			block, encoded = inBlock(block, encoded)
		}
		k, err := f.kept.key.Decode(encoded)
		if err != nil {
			return f.o.rowsFailed(f.node, err)
		}
		key, row := windowed(k, start, end), &run.rows[i]
		for _, p := range f.ports {
			if err := f.o.settle(func() error { return p.final(key, row.v, row.ms) }); err != nil {
				return err
			}
		}
	}
	return f.leave(start)
}

// leave counts off the panes that are in no later window than the one that
// begins at start.
func (f *windowFinals[K, A]) leave(start int64) error {
	if f.waiting == nil {
		return nil
	}
	for row, err := range f.rows.ByStart(start, windowEnd(start, f.w.every-1)) {
		if err == nil {
			err = f.waiting.changed(row.Key, waiting[A]{row.Value, true}, waiting[A]{})
		}
		if err != nil {
			return f.o.rowsFailed(f.node, err)
		}
	}
	return nil
}

// viewBlock is for some hundred keys. Who keeps one of them keeps that much.
const viewBlock = 4 << 10

// inBlock copies b behind what is in block, or into a new one where there is no room.
// Nothing in a block is ever changed.
func inBlock(block, b []byte) (next, copied []byte) {
	if len(block)+len(b) > cap(block) {
		block = make([]byte, 0, max(viewBlock, len(b)))
	}
	at := len(block)
	block = append(block, b...)
	return block, block[at:len(block):len(block)]
}
