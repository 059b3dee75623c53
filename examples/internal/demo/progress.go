package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// progress is how many input records are processed, as the committed offsets
// say. The last one is not while something is in a repartition topic.
//
// The offsets are asked for before the ends: what was sent to a repartition
// topic by the records before an offset is below the end then. The other way
// round it could be missed.
func (r *Run) progress(ctx context.Context) (done, all int64, err error) {
	committed, err := r.admin.FetchOffsets(ctx, r.app)
	if err != nil {
		return 0, 0, err
	}
	topics := slices.Clone(r.cfg.Inputs)
	for _, name := range r.cfg.Internal {
		topics = append(topics, r.app+"-"+name+"-repartition")
	}
	ends, err := r.admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return 0, 0, err
	}
	var lag int64
	ends.Each(func(o kadm.ListedOffset) {
		at := int64(0)
		if c, ok := committed.Lookup(o.Topic, o.Partition); ok {
			at = c.At
		}
		if slices.Contains(r.cfg.Inputs, o.Topic) {
			all += o.Offset
			done += at
		} else {
			lag += o.Offset - at
		}
	})
	if lag > 0 && done == all {
		done = all - 1
	}
	return done, all, nil
}

func (r *Run) bar(done, all int64) {
	const width = 40
	full := int(done * width / max(all, 1))
	fmt.Printf("\r[%s%s] %3d%%  %d killed ", strings.Repeat("#", full), strings.Repeat(".", width-full), done*100/max(all, 1), r.killed)
}
