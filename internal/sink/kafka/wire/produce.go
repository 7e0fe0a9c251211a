package wire

import (
	"context"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/protocol"
)

// smallBatch is written in one piece with the request around it, at the price of a copy.
const smallBatch = 16 << 10

// ProduceRequest is one record batch for one partition. It is sent with acks=all.
type ProduceRequest struct {
	Topic           string
	Partition       int32
	TransactionalID string // where the batch is part of a transaction; the broker refuses it without (53)

	// Batch is one record batch in format 2. After an error it may still be read by a connection that has not ended
	// yet: it must not be changed or used again for anything but the same bytes.
	Batch []byte
}

// ProduceResult is the broker's answer.
type ProduceResult struct {
	BaseOffset int64 // of the batch, also where it is a repeated one that the broker has already
}

func (r *ProduceRequest) String() string {
	return fmt.Sprintf("produce to topic %s partition %d", r.Topic, r.Partition)
}

// Produce sends a batch to the partition's leader, once. nil says that all in-sync replicas have it. With code 7 or 20,
// a lost connection or a timeout the batch may be in the log all the same.
func (c *Cluster) Produce(ctx context.Context, request ProduceRequest) (ProduceResult, error) {
	answer, err := c.askLeader(ctx, protocol.Produce, partition{request.Topic, request.Partition}, func(rw io.ReadWriter, version int16) (protocol.Message, error) {
		return c.talkProduce(rw, version, &request)
	})
	if err != nil {
		return ProduceResult{}, err
	}
	if message, ok := answer.message.(*versioned); ok {
		c.throttles.note(answer.asked.leader, lastOf(message.body))
	}
	result, err := readProduced(answer, &request)
	c.doubtLeader(answer.asked, err)
	return result, err
}

func (l *link) talkProduce(rw io.ReadWriter, version int16, request *ProduceRequest) (protocol.Message, error) {
	if version < 3 { // KIP-98: record batches of format 2, transactional ids
		return nil, &Error{Code: codeUnsupportedVersion, Request: request.String(), Message: "the broker does not know record batches"}
	}
	serial := l.serial.Add(1)
	head := header(protocol.Produce, version, serial, l.options.ClientID).
		nullable(request.TransactionalID).
		int16(-1). // acks: all
		int32(int32((l.options.Timeout / 2).Milliseconds())).
		int32(1).text(request.Topic).
		int32(1).int32(request.Partition).
		int32(int32(len(request.Batch)))
	head.finish(len(request.Batch))
	if err := writeBoth(rw, head, request.Batch); err != nil {
		return nil, err
	}
	answer, err := readFrame(rw, protocol.Produce, serial)
	if err != nil {
		return nil, err
	}
	return &versioned{answer.(*frame), version}, nil
}

func writeBoth(w io.Writer, head output, body []byte) error {
	if len(body) <= smallBatch {
		head, body = append(head, body...), nil
	}
	if _, err := w.Write(head); err != nil || body == nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// versioned is an answer whose fields depend on the version.
type versioned struct {
	*frame
	version int16
}

// readProduced reads the answer, of version 3 to 8.
func readProduced(answer led, request *ProduceRequest) (ProduceResult, error) {
	message, _ := answer.message.(*versioned)
	in := &input{rest: message.body}
	topics, topic, partitions, number := in.count(1), in.text(), in.count(1), in.int32()
	failure := &Error{Code: in.int16(), Request: request.String(), Needs: "WRITE on topic " + request.Topic}
	result := ProduceResult{BaseOffset: in.int64()}
	in.int64() // when the log took it
	if message.version >= 5 {
		in.int64() // start of the log
	}
	if message.version >= 8 {
		failure.Records = in.records()
		failure.Message = in.text()
	}
	switch {
	case in.err != nil:
		return ProduceResult{}, fmt.Errorf("%s: %w", request, in.err)
	case topics != 1 || partitions != 1 || topic != request.Topic || number != request.Partition:
		return ProduceResult{}, fmt.Errorf("%s: the answer is for topic %s partition %d", request, topic, number)
	case failure.Code == codeTransactionalIDDenied:
		failure.Needs = writeOn(request.TransactionalID)
	case failure.Code == 0:
		return result, nil
	}
	return result, failure
}

// records are those of a refused batch that it was refused for (KIP-467).
func (i *input) records() map[int]string {
	n := i.count(6)
	if n == 0 {
		return nil
	}
	records := make(map[int]string, n)
	for range n {
		index := i.int32()
		records[int(index)] = i.text()
	}
	return records
}
