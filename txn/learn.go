package txn

// unused is a topic that no Producer writes to.
const unused = "semel-no-topic"

// learn waits until the client has noted the topics that this transaction is
// the first to write to.
//
// A client that does not know a topic yet keeps its records until metadata
// comes, sends them, and notes the topic after that (franz-go 1.22.3,
// storePartitionsUpdate). On a busy machine all the records may be
// acknowledged, and the transaction end, in between. The client then finds no
// partition in which something was written: it sends an abort instead of the
// commit and reports success, and it does not reset the sequence numbers of
// those partitions for the next epoch.
//
// Metadata is the work of one goroutine of the client, which also forgets
// topics. Once it has forgotten a topic that it never knew, everything that it
// was at before is finished.
func (p *Producer) learn() {
	if !p.fresh {
		return
	}
	p.cl.PurgeTopicsFromProducing(unused)
	p.fresh = false
}

// meet notes the topics of what is added.
func (p *Producer) meet(tps []TP) {
	for _, tp := range tps {
		if _, ok := p.topics[tp.Topic]; !ok {
			p.topics[tp.Topic] = struct{}{}
			p.fresh = true
		}
	}
}
