package model

import "github.com/semelstream/semel/internal/seam"

// These are what operators and time do to a cluster; they act at once, outside
// of all processes.

// Commit sets an offset of a group, as an operator would while the group is
// empty.
func (w *World) Commit(group string, tp seam.TP, at int64) {
	w.broker.group(group).offs[tp] = seam.Offset{At: at, Epoch: -1}
}

// DeleteOffsets deletes all offsets of a group, as their expiry does.
func (w *World) DeleteOffsets(group string) { clear(w.broker.group(group).offs) }

// DeleteRecords deletes the records of tp before the offset, as retention
// does.
func (w *World) DeleteRecords(tp seam.TP, before int64) {
	w.broker.purge(map[seam.TP]int64{tp: before})
}

// SetConfig changes the configuration of a topic.
func (w *World) SetConfig(topic, key, value string) {
	w.broker.topics[topic].spec.Config[key] = value
}
