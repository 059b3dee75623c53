package state

// A scalar is a number of a store that goes through the states of its rows: it
// has its last mark and its last commit to go back to, and what it was when the
// closing transaction closed.
type scalar struct {
	now, mark, closing, committed int64
	gen                           uint64 // the mark that mark belongs to
}

func (s *scalar) set(v int64, gen uint64) {
	if s.gen != gen {
		s.mark, s.gen = s.now, gen
	}
	s.now = v
}

func (s *scalar) undo(gen uint64) {
	if s.gen == gen {
		s.now = s.mark
	}
}

func (s *scalar) freeze() { s.closing = s.now }
func (s *scalar) commit() { s.committed = s.closing }
func (s *scalar) rewind() { s.now = s.committed }
