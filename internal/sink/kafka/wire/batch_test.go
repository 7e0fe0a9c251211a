package wire

import (
	"time"

	records "github.com/kubecdc/kubecdc/internal/sink/kafka/batch"
)

// batch is a record batch of one producer.
type batch struct {
	Producer
	sequence      int32
	transactional bool
	values        []string
}

func (b batch) bytes() []byte {
	e := records.NewEncoder(records.None)
	for _, value := range b.values {
		e.Add(&records.Record{Key: []byte("key"), Value: []byte(value), Timestamp: time.Now().UnixMilli()})
	}
	return e.Finish(nil, records.Producer{ID: b.ID, Epoch: b.Epoch, Sequence: b.sequence, Transactional: b.transactional})
}
