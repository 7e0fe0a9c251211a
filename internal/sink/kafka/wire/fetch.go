package wire

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/segmentio/kafka-go/protocol"
)

// fetchVersion is the one that is spoken (Kafka 2.3 and newer).
const fetchVersion = 11

// FetchRequest reads one partition. It is answered at once, also with nothing.
type FetchRequest struct {
	Topic     string
	Partition int32
	Offset    int64
	MaxBytes  int  // of the records; the first batch is returned whole however large it is; 0 is 1 MiB
	Committed bool // up to the last stable offset only, with Aborted
}

// FetchResult is what lies at the offset.
type FetchResult struct {
	// Records are record batches as the broker stores them: the first may begin before the offset, the last may be cut
	// off, batches may be empty, control batches are in between. The caller owns it.
	Records []byte
	Aborted []Aborted // only with Committed; sorted by FirstOffset
}

// Aborted is a transaction of which Records may hold batches that do not count: those of the producer from FirstOffset
// to its next abort marker.
type Aborted struct {
	ProducerID  int64
	FirstOffset int64
}

func (r *FetchRequest) String() string {
	return fmt.Sprintf("fetch topic %s partition %d from offset %d", r.Topic, r.Partition, r.Offset)
}

// Fetch reads from the partition's leader, once. It is an *Error with code 1 where the log does not hold the offset:
// below its start, or above its end.
func (c *Cluster) Fetch(ctx context.Context, request FetchRequest) (FetchResult, error) {
	answer, err := c.askLeader(ctx, protocol.Fetch, partition{request.Topic, request.Partition}, func(rw io.ReadWriter, version int16) (protocol.Message, error) {
		return c.talkFetch(rw, version, &request)
	})
	if err != nil {
		return FetchResult{}, err
	}
	if message, ok := answer.message.(*frame); ok {
		c.throttles.note(answer.asked.leader, firstOf(message.body))
	}
	result, err := readFetched(answer, &request)
	c.doubtLeader(answer.asked, err)
	return result, err
}

func (l *link) talkFetch(rw io.ReadWriter, version int16, request *FetchRequest) (protocol.Message, error) {
	if version < fetchVersion {
		return nil, &Error{Code: codeUnsupportedVersion, Request: request.String(), Message: fmt.Sprintf("the broker has version %d of Fetch, %d is needed", version, fetchVersion)}
	}
	serial := l.serial.Add(1)
	most := int32(min(request.MaxBytes, maxFrame/2))
	if most <= 0 {
		most = 1 << 20
	}
	var isolation int8
	if request.Committed {
		isolation = 1
	}
	out := header(protocol.Fetch, fetchVersion, serial, l.options.ClientID).
		int32(-1).          // replica: a client
		int32(0).int32(0).  // wait for nothing
		int32(most).        // of the answer
		int8(isolation).    //
		int32(0).int32(-1). // no session
		int32(1).text(request.Topic).
		int32(1).int32(request.Partition).
		int32(-1). // leader epoch: not known
		int64(request.Offset).
		int64(-1).   // log start: a client has none
		int32(most). // of the partition
		int32(0).    // forgotten topics
		text("")     // rack
	out.finish(0)
	if _, err := rw.Write(out); err != nil {
		return nil, err
	}
	return readFrame(rw, protocol.Fetch, serial)
}

func readFetched(answer led, request *FetchRequest) (FetchResult, error) {
	message, _ := answer.message.(*frame)
	in := &input{rest: message.body}
	in.int32() // throttle time
	failure := &Error{Code: in.int16(), Request: request.String(), Needs: "READ on topic " + request.Topic}
	in.int32() // session
	if in.err == nil && failure.Code != 0 {
		return FetchResult{}, failure
	}
	topics, topic, partitions, number := in.count(1), in.text(), in.count(1), in.int32()
	failure.Code = in.int16()
	in.int64() // high watermark
	in.int64() // last stable offset
	in.int64() // start of the log
	var result FetchResult
	for range in.count(16) {
		result.Aborted = append(result.Aborted, Aborted{ProducerID: in.int64(), FirstOffset: in.int64()})
	}
	in.int32() // preferred replica
	result.Records = in.bytes()
	switch {
	case in.err != nil:
		return FetchResult{}, fmt.Errorf("%s: %w", request, in.err)
	case topics != 1 || partitions != 1 || topic != request.Topic || number != request.Partition:
		return FetchResult{}, fmt.Errorf("%s: the answer is for topic %s partition %d", request, topic, number)
	case failure.Code != 0:
		return FetchResult{}, failure
	}
	slices.SortStableFunc(result.Aborted, func(a, b Aborted) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	return result, nil
}
