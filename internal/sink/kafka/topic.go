package kafka

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// topic is what the sink knows of a topic.
type topic struct {
	name       string
	id         string // Kafka's, "" if it is not known
	limit      atomic.Int64
	partitions []*partition // those that are written to
	fenced     bool         // nobody who opened before can write to it any more
	made       bool         // by this sink, because data chose it
	compacted  bool
	byKey      bool     // keys with a schema choose the partition by all their bytes, as they did when it was begun
	schema     uint32   // that keys begin with; 0 is that none was written, or that nobody asks
	misfits    []string // in what it differs from what is configured

	part  []byte // of the mark
	moved bool   // part is not true any more
}

// partition is one log. A goroutine of Write has it for itself.
type partition struct {
	topic    *topic
	number   int32
	first    int64 // of the log, when it was looked at
	next     int64 // the offset after what is known to be in the log
	sequence int32 // of the next batch
	frozen   *frozen
	others   span          // in which somebody else has written, and nobody has looked; zero is none
	inspect  time.Time     // when to look at the next
	wait     time.Duration // from the last look until then
	indexes  []int32       // of the messages of this Write
	steps    []int32       // of the Write, in which each is sent
	turn     uint64        // the Write that the indexes are of
}

// frozen is a batch that was encoded and is not acknowledged. It may be in the log, or on its way there, so it must not
// change any more.
type frozen struct {
	bytes []byte
	count int
	since time.Time
	taken bool // a connection was given up that may still read the bytes
}

// String names the partition in messages.
func (p *partition) String() string {
	return fmt.Sprintf("topic %s partition %d", p.topic.name, p.number)
}

// span is offsets of a partition.
type span struct{ from, to int64 }

// strange notes what is in the partition after what the sink knew of it, and that it has not written. So many markers
// are expected there.
func (p *partition) strange(from, to, markers int64) {
	if to-from <= markers {
		return
	}
	if p.others.to == 0 {
		p.others.from = from
	}
	p.others.to = to
}

func newTopic(described wire.Topic, identity wire.Identity, settings wire.Settings) *topic {
	t := &topic{name: described.Name, id: identity.ID, compacted: compacts(settings.CleanupPolicy)}
	t.limit.Store(int64(settings.MaxMessageBytes))
	for i := range described.Partitions {
		t.partitions = append(t.partitions, &partition{topic: t, number: int32(i)})
	}
	return t
}

// partitionOf is where the message belongs. One without a key belongs where the empty key does.
func (t *topic) partitionOf(m *sink.Message) *partition {
	by := m.Key
	if m.Partition != nil && (m.KeySchema == 0 || !t.byKey) {
		by = m.Partition
	}
	return t.partitions[batch.Partition(by, len(t.partitions))]
}

// shrink keeps what a refusal has shown of max.message.bytes.
func (t *topic) shrink(refused int) {
	for {
		have := t.limit.Load()
		if int64(refused) > have || t.limit.CompareAndSwap(have, int64(refused)-1) {
			return
		}
	}
}
