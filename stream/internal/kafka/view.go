package kafka

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"slices"

	"github.com/semelstream/semel/internal/seam"
)

// A view is what one member knows of the topics that match patterns. It is
// replaced as a whole.
type view struct {
	subs  []seam.Sub
	print uint64
	asked bool // for an assignment that was made with this view
}

func newView(subs []seam.Sub) view {
	h := fnv.New64a()
	for _, s := range subs {
		b := binary.AppendUvarint(nil, uint64(s.Tasks))
		for _, topic := range slices.Sorted(maps.Keys(s.Matched)) {
			b = binary.AppendUvarint(appendString(b, topic), uint64(s.Matched[topic]))
		}
		h.Write(append(b, 0))
	}
	return view{subs: subs, print: h.Sum64()}
}

// topics are all that are named or match.
func (v view) topics() (all []string) {
	for _, s := range v.subs {
		all = append(all, s.Topics...)
		all = append(all, slices.Sorted(maps.Keys(s.Matched))...)
	}
	return all
}

func (b *balancer) now() view {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.view
}

// update takes a new view, and says whether it is another one.
func (b *balancer) update(subs []seam.Sub) bool {
	v := newView(subs)
	b.mu.Lock()
	defer b.mu.Unlock()
	if v.print == b.view.print {
		return false
	}
	v.asked = true // whoever updates asks
	b.view = v
	return true
}

// compare looks at the leader's view, which an assignment comes with. If ours is
// another one, either may be the older: we look, and ask once, so that the leader
// hears of our view and looks, too. A restarted member is given its old
// assignment unseen, of a view that may be long past.
func (b *balancer) compare(rest []byte) {
	print, ok := readView(rest)
	if !ok {
		return
	}
	b.mu.Lock()
	differs, first := print != b.view.print, !b.view.asked
	b.view.asked = b.view.asked || differs
	b.mu.Unlock()
	if !differs {
		return
	}
	b.look()
	if first {
		b.log.Info("the assignment was made with other topics than are known here; asking for a new one")
		b.rejoin()
	}
}

// With patterns kgo would stand in the way: it joins when it has found a topic that
// it consumes, where nothing may match; it asks again and again for one that was
// deleted; and it gives up what it was assigned of a topic that it has not found
// itself. So it consumes the anchor only, and what it is assigned is disguised as
// partitions of that. It never fetches: it just compares assignments.

// disguise makes partitions of the anchor of partitions, the same ones each time.
func (b *balancer) disguise(parts map[string][]int32) map[string][]int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []int32
	for topic, ps := range parts {
		for _, p := range ps {
			tp := seam.TP{Topic: topic, Partition: p}
			id, ok := b.ids[tp]
			if !ok {
				id = int32(len(b.tps))
				b.ids[tp], b.tps = id, append(b.tps, tp)
			}
			out = append(out, id)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return map[string][]int32{b.anchor: out}
}

// reveal undoes disguise. Without patterns it does nothing.
func (b *balancer) reveal(parts map[string][]int32) map[string][]int32 {
	if b.anchor == "" {
		return parts
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string][]int32)
	for _, id := range parts[b.anchor] {
		tp := b.tps[id]
		out[tp.Topic] = append(out[tp.Topic], tp.Partition)
	}
	return out
}

// A view's fingerprint follows facts and the leader's fingerprint, in groups that
// have patterns.

func appendView(b []byte, print uint64) []byte { return binary.BigEndian.AppendUint64(b, print) }

func readView(b []byte) (uint64, bool) {
	if len(b) < 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}
