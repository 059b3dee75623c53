package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// parse decodes a request (without its size); nil for a key that kmsg does not
// know.
func parse(b []byte) (kmsg.Request, int32, error) {
	if len(b) < 10 {
		return nil, 0, errors.New("proxy: a request without a header")
	}
	key, version := int16(binary.BigEndian.Uint16(b)), int16(binary.BigEndian.Uint16(b[2:]))
	corr := int32(binary.BigEndian.Uint32(b[4:]))
	req := kmsg.RequestForKey(key)
	if req == nil {
		return nil, corr, nil
	}
	req.SetVersion(version)
	b = b[8:]
	if n := int16(binary.BigEndian.Uint16(b)); n < 0 {
		b = b[2:]
	} else {
		b = b[2+n:]
	}
	if req.IsFlexible() {
		b = b[1:] // no client sends header tags
	}
	if err := req.ReadFrom(b); err != nil {
		return nil, corr, fmt.Errorf("proxy: %s v%d: %w", kmsg.NameForKey(key), version, err)
	}
	return req, corr, nil
}

// encode makes the frame of an answer.
func encode(resp kmsg.Response, req kmsg.Request, corr int32) []byte {
	resp.SetVersion(req.GetVersion())
	b := make([]byte, 8, 64)
	binary.BigEndian.PutUint32(b[4:], uint32(corr))
	if resp.IsFlexible() && req.Key() != kmsg.ApiVersions.Int16() {
		b = append(b, 0)
	}
	b = resp.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// Code answers a request of the transaction protocol with an error, for each
// partition where the answer has codes by partition.
func Code(e *kerr.Error) func(kmsg.Request) kmsg.Response {
	return func(kreq kmsg.Request) kmsg.Response {
		kresp := kreq.ResponseKind()
		switch resp := kresp.(type) {
		case *kmsg.InitProducerIDResponse:
			resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = e.Code, -1, -1
		case *kmsg.EndTxnResponse:
			resp.ErrorCode, resp.ProducerID, resp.ProducerEpoch = e.Code, -1, -1
		case *kmsg.AddOffsetsToTxnResponse:
			resp.ErrorCode = e.Code
		case *kmsg.AddPartitionsToTxnResponse:
			addPartitions(kreq.(*kmsg.AddPartitionsToTxnRequest), resp, e.Code)
		case *kmsg.TxnOffsetCommitResponse:
			txnOffsets(kreq.(*kmsg.TxnOffsetCommitRequest), resp, e.Code)
		case *kmsg.OffsetCommitResponse:
			offsets(kreq.(*kmsg.OffsetCommitRequest), resp, e.Code)
		case *kmsg.OffsetFetchResponse:
			offsetFetch(kreq.(*kmsg.OffsetFetchRequest), resp, e.Code)
		case *kmsg.FindCoordinatorResponse:
			findCoordinator(kreq.(*kmsg.FindCoordinatorRequest), resp, e.Code)
		case *kmsg.DescribeTransactionsResponse:
			describeTransactions(kreq.(*kmsg.DescribeTransactionsRequest), resp, e.Code)
		case *kmsg.ProduceResponse:
			produce(kreq.(*kmsg.ProduceRequest), resp, e.Code)
		default:
			panic(fmt.Sprintf("proxy: no way to say %s in an answer to %T", e.Message, kreq))
		}
		return kresp
	}
}

func describeTransactions(req *kmsg.DescribeTransactionsRequest, resp *kmsg.DescribeTransactionsResponse, code int16) {
	for _, id := range req.TransactionalIDs {
		t := kmsg.NewDescribeTransactionsResponseTransactionState()
		t.TransactionalID, t.ErrorCode, t.ProducerID, t.ProducerEpoch = id, code, -1, -1
		resp.TransactionStates = append(resp.TransactionStates, t)
	}
}

func addPartitions(req *kmsg.AddPartitionsToTxnRequest, resp *kmsg.AddPartitionsToTxnResponse, code int16) {
	for _, t := range req.Topics {
		rt := kmsg.NewAddPartitionsToTxnResponseTopic()
		rt.Topic = t.Topic
		for _, n := range t.Partitions {
			rp := kmsg.NewAddPartitionsToTxnResponseTopicPartition()
			rp.Partition, rp.ErrorCode = n, code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}

func txnOffsets(req *kmsg.TxnOffsetCommitRequest, resp *kmsg.TxnOffsetCommitResponse, code int16) {
	for _, t := range req.Topics {
		rt := kmsg.NewTxnOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}

func offsets(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, code int16) {
	for _, t := range req.Topics {
		rt := kmsg.NewOffsetCommitResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewOffsetCommitResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, code
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}

// offsetFetch puts "unstable" where brokers put it, at the partitions, and all
// other codes at the group.
func offsetFetch(req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse, code int16) {
	for _, g := range req.Groups {
		rg := kmsg.NewOffsetFetchResponseGroup()
		rg.Group = g.Group
		if code != kerr.UnstableOffsetCommit.Code {
			rg.ErrorCode = code
		}
		for _, t := range g.Topics {
			rt := kmsg.NewOffsetFetchResponseGroupTopic()
			rt.Topic, rt.TopicID = t.Topic, t.TopicID
			for _, n := range t.Partitions {
				rp := kmsg.NewOffsetFetchResponseGroupTopicPartition()
				rp.Partition, rp.Offset, rp.ErrorCode = n, -1, code
				rt.Partitions = append(rt.Partitions, rp)
			}
			rg.Topics = append(rg.Topics, rt)
		}
		resp.Groups = append(resp.Groups, rg)
	}
}

func findCoordinator(req *kmsg.FindCoordinatorRequest, resp *kmsg.FindCoordinatorResponse, code int16) {
	resp.ErrorCode = code
	for _, k := range req.CoordinatorKeys {
		rc := kmsg.NewFindCoordinatorResponseCoordinator()
		rc.Key, rc.ErrorCode, rc.NodeID = k, code, -1
		resp.Coordinators = append(resp.Coordinators, rc)
	}
}

func produce(req *kmsg.ProduceRequest, resp *kmsg.ProduceResponse, code int16) {
	for _, t := range req.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode, rp.BaseOffset = p.Partition, code, -1
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
}
