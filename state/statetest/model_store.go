package statetest

import (
	"errors"
	"maps"

	"pgregory.net/rapid"

	"github.com/semelstream/semel/state"
)

// flaky is an engine whose next Write may fail, applied or not.
type flaky struct {
	state.Engine
	before, after bool
}

var errFlaky = errors.New("the disk had a bad moment")

func (f *flaky) Write(b *state.Batch) error {
	if f.before {
		f.before = false
		return errFlaky
	}
	err := f.Engine.Write(b)
	if f.after && err == nil {
		f.after = false
		return errFlaky
	}
	return err
}

func (m *model) persist(t *rapid.T) {
	w := m.db.Persist()
	if m.write != nil {
		if w != nil {
			m.Fatal("a second Write beside one under way")
		}
		return
	}
	if w == nil {
		if n := m.db.PendingBytes(); n != 0 {
			m.Fatalf("nothing to store, %d bytes pending", n)
		}
		return
	}
	m.write, m.written, m.writePos, m.writeMeta = w, false, nil, maps.Clone(m.metaCommitted)
	for _, tb := range m.tables {
		m.writePos = append(m.writePos, int64(len(tb.log)))
	}
}

func (m *model) writeOut(t *rapid.T) {
	if m.write == nil || m.written {
		return
	}
	bad := rapid.IntRange(0, 5).Draw(t, "disk")
	m.engine.before, m.engine.after = bad == 1, bad == 2
	m.writeErr, m.written = m.write.Commit(), true
	if (m.writeErr != nil) != (bad == 1 || bad == 2) {
		m.Fatalf("Commit: %v", m.writeErr)
	}
}

func (m *model) persisted(t *rapid.T) {
	if m.write == nil || !m.written {
		return
	}
	m.db.Persisted(m.write, m.writeErr)
	for i, tb := range m.tables {
		if m.writeErr == nil {
			tb.stored = m.writePos[i]
		}
		if tb.part.Position() != tb.stored {
			m.Fatalf("%s: position %d, want %d", tb.name, tb.part.Position(), tb.stored)
		}
	}
	if m.writeErr == nil {
		m.metaStored = m.writeMeta
	}
	m.write = nil
}

func (m *model) rewind(t *rapid.T) {
	m.must(m.db.Rewind())
	if w := m.write; w != nil {
		if !m.written {
			if err := w.Commit(); !errors.Is(err, state.ErrRewound) {
				m.Fatalf("a rewound Write: %v", err)
			}
		}
		m.db.Persisted(w, m.writeErr) // comes late and is ignored
		m.write = nil
	}
	if m.db.DirtyBytes()+m.db.PendingBytes() != 0 {
		m.Fatal("bytes are left after a rewind")
	}
	m.checkStored()
	m.restore()
}

func (m *model) flush(*rapid.T) {
	m.must(m.db.Flush())
	m.flushed()
}

func (m *model) flushed() {
	for _, tb := range m.tables {
		tb.flushed = tb.stored
	}
	m.metaFlushed = m.metaStored
}

func (m *model) reopen(*rapid.T) {
	m.flushed()
	m.close()
	m.open()
}

func (m *model) crash(t *rapid.T) {
	if !m.disk.Crash(rapid.Uint64().Draw(t, "choice")) {
		return
	}
	m.db = nil
	m.open()
}
