package state

import (
	"bytes"
	"iter"
	"math"
	"slices"
)

// applyVersions puts records that are one version each into b: each joins those
// that its key has already, in order of time, and of several at one time the
// last counts.
//
// Records of one transaction are not in order of time, so that one may come
// behind a later time that would have forgotten it. Deletions are kept
// therefore: what they deleted must not come to life again. Other versions that
// are out of reach are not.
func (p *Part) applyVersions(b *Batch, rows iter.Seq[Row]) error {
	touched := map[string]history[[]byte]{}
	var order []string
	for r := range rows {
		h, ok := touched[string(r.Key)]
		if !ok {
			var err error
			if h, err = p.rawHistory(r.Key); err != nil {
				return err
			}
			order = append(order, string(r.Key))
		}
		p.newest = max(p.newest, r.Time)
		touched[string(r.Key)] = addRaw(h, version[[]byte]{from: r.Time, v: bytes.Clone(r.Value), has: r.Value != nil})
	}
	bound := int64(math.MinInt64)
	if p.history > 0 && p.newest > math.MinInt64+p.history {
		bound = p.newest - p.history
	}
	for _, key := range order {
		h := touched[key]
		h = h[max(h.asOf(bound), 0):]
		p.val = rowValue(p.val[:0], nil, h[len(h)-1].from)
		for _, v := range h {
			p.val = appendVersion(p.val, v.from, v.v)
		}
		p.key = rowKey(p.key[:0], p.rec.id, []byte(key))
		b.Set(p.key, p.val)
	}
	return nil
}

// addRaw puts a version in its place. The history is the caller's own.
func addRaw(h history[[]byte], v version[[]byte]) history[[]byte] {
	i, same := h.at(v.from)
	if same {
		h[i] = v
		return h
	}
	return slices.Insert(h, i, v)
}

// rawHistory is what the engine has of a key.
func (p *Part) rawHistory(key []byte) (h history[[]byte], err error) {
	p.key = rowKey(p.key[:0], p.rec.id, key)
	_, err = p.d.e.Get(p.key, func(row []byte) error {
		src, _, err := splitRow(row)
		for err == nil && len(src) > 0 {
			var v version[[]byte]
			if v.from, v.v, src, err = cutVersion(src); err == nil {
				v.has = v.v != nil
				v.v = bytes.Clone(v.v)
				h = append(h, v)
			}
		}
		return err
	})
	return h, err
}
