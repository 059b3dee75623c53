package state

import (
	"encoding/binary"
	"fmt"
)

// checkFormat reads the format of the engine's rows, or writes it if the
// engine is new.
func (d *DB) checkFormat() error {
	version := uint32(0)
	ok, err := d.e.Get(formatKey, func(v []byte) error {
		if len(v) != 4 {
			return fmt.Errorf("%w: a format of %d bytes", ErrCorrupt, len(v))
		}
		version = binary.BigEndian.Uint32(v)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the format: %w", err)
	}
	if ok && version != layoutVersion {
		return fmt.Errorf("%w: rows of format %d, this version knows %d", ErrFormat, version, layoutVersion)
	}
	if ok {
		return nil
	}
	var b Batch
	b.Set(formatKey, binary.BigEndian.AppendUint32(nil, layoutVersion))
	if err := d.e.Write(&b); err != nil {
		return fmt.Errorf("writing the format: %w", err)
	}
	return nil
}

// catalogue reads the stores that were ever made, and meta.
func (d *DB) catalogue() (map[string]storeRecord, error) {
	known := map[string]storeRecord{}
	err := d.scanNames(storePrefix, func(name string, value []byte) error {
		r, err := readStoreRecord(value)
		known[name] = r
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the catalogue of stores: %w", err)
	}
	d.meta = newMeta()
	err = d.scanNames(metaPrefix, func(name string, value []byte) error {
		v, err := readInt64(value)
		d.meta.load(name, v)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading meta: %w", err)
	}
	return known, nil
}

func (d *DB) scanNames(prefix []byte, f func(name string, value []byte) error) error {
	it := d.e.Scan(prefix, prefixEnd(prefix), false)
	for it.Next() {
		if err := f(string(it.Key()[len(prefix):]), it.Value()); err != nil {
			_ = it.Close()
			return err
		}
	}
	return it.Close()
}

// writeCatalogue gives new stores their ids for good, before any row has one.
func (d *DB) writeCatalogue() error {
	var b Batch
	for _, p := range d.parts {
		if !p.isStored {
			p.clearNew(&b)
			b.Set(p.catalogue, p.rec.bytes())
		}
	}
	if b.Len() == 0 {
		return nil
	}
	if err := d.e.Write(&b); err != nil {
		return fmt.Errorf("writing the catalogue of stores: %w", err)
	}
	for _, p := range d.parts {
		p.isStored = true
	}
	return nil
}

// load takes in what the catalogue says of the store.
func (p *Part) load(r storeRecord) {
	p.rec = r
	p.stored.Store(r.position)
	p.storedLast = r.last
	p.seq = scalar{now: int64(r.last), committed: int64(r.last)}
}

// clearNew empties the ids of a new store. An order by time whose making was
// cut short may have left something there.
func (p *Part) clearNew(b *Batch) {
	b.DeleteRange(storeRange(p.rec.id))
	if p.rec.timeID != 0 {
		b.DeleteRange(storeRange(p.rec.timeID))
	}
}

// reload takes positions and meta from the engine.
func (d *DB) reload() error {
	known, err := d.catalogue()
	if err != nil {
		return err
	}
	for _, p := range d.parts {
		r, ok := known[p.name]
		if !ok || r.id != p.rec.id {
			return fmt.Errorf("%w: store %q is not in the catalogue any more", ErrCorrupt, p.name)
		}
		p.load(r)
	}
	return nil
}
