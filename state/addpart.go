package state

import (
	"fmt"
	"math"
)

// addPart finds a store in the catalogue, or gives it a place there.
func (d *DB) addPart(s Spec, known map[string]storeRecord) error {
	if _, ok := kindNames[s.Kind]; !ok {
		return fmt.Errorf("store %q: kind %d is not known", s.Name, s.Kind)
	}
	if d.byName[s.Name] != nil {
		return fmt.Errorf("store %q is there twice", s.Name)
	}
	if s.ByTime && !s.Kind.segmented() {
		return fmt.Errorf("store %q: a %s store has no order by time of its own", s.Name, s.Kind)
	}
	p := &Part{
		d: d, name: s.Name, history: s.History, newest: math.MinInt64,
		catalogue: append(append([]byte(nil), storePrefix...), s.Name...),
	}
	r, ok := known[s.Name]
	if ok && r.keys.kind != s.Kind {
		return fmt.Errorf("store %q was made as a %s store and is opened as a %s store: give it a new name", s.Name, r.keys.kind, s.Kind)
	}
	if !ok {
		var err error
		if r, err = newRecord(s, known); err != nil {
			return err
		}
	}
	p.isStored = ok
	p.load(r)
	known[s.Name] = r
	if s.ByTime && r.timeID == 0 {
		if err := d.makeOrder(p, known); err != nil {
			return fmt.Errorf("store %q: making its order by time: %w", s.Name, err)
		}
	}
	d.parts = append(d.parts, p)
	d.byName[s.Name] = p
	return nil
}

// newRecord is that of a store that is not in the catalogue yet.
func newRecord(s Spec, known map[string]storeRecord) (r storeRecord, err error) {
	r.keys = layout{s.Kind, 1}
	if s.Kind.expires() {
		if r.keys.segment = s.Segment; r.keys.segment <= 0 {
			r.keys.segment = defaultSegment
		}
	}
	r.id, err = freeID(known)
	return r, err
}

func freeID(known map[string]storeRecord) (uint16, error) {
	next := firstID
	for _, r := range known {
		next = max(next, int(r.id)+1, int(r.timeID)+1)
	}
	if next > math.MaxUint16 {
		return 0, fmt.Errorf("no store id is left")
	}
	return uint16(next), nil
}

// orderBatch is how many rows of an order by time are made at once.
const orderBatch = 10_000

// makeOrder gives a store an order by time of the rows that it has. Until the
// catalogue says that the order is there, nobody reads it, so that a crash in
// between costs only the work.
func (d *DB) makeOrder(p *Part, known map[string]storeRecord) error {
	id, err := freeID(known)
	if err != nil {
		return err
	}
	r := p.rec
	r.timeID = id
	known[p.name] = r
	if !p.isStored { // a new store: the catalogue is written with it
		p.load(r)
		return nil
	}
	var b Batch
	b.DeleteRange(storeRange(id))
	if err := d.eachKey(p, func(key []byte) error {
		b.Set(p.rec.keys.toTime(rowKey(nil, id, nil), key), nil)
		if b.Len() < orderBatch {
			return nil
		}
		defer b.Reset()
		return d.e.Write(&b)
	}); err != nil {
		return err
	}
	b.Set(p.catalogue, r.bytes())
	if err := d.e.Write(&b); err != nil {
		return err
	}
	p.load(r)
	return nil
}

// eachKey calls f with the keys of a store's rows on the engine.
func (d *DB) eachKey(p *Part, f func(key []byte) error) error {
	from, to := storeRange(p.rec.id)
	it := d.e.Scan(from, to, false)
	for it.Next() {
		if err := f(it.Key()[idSize:]); err != nil {
			_ = it.Close() // f's error tells more
			return err
		}
	}
	return it.Close()
}
