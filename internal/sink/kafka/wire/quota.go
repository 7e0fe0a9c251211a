package wire

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/addpartitionstotxn"
	"github.com/segmentio/kafka-go/protocol/createtopics"
	"github.com/segmentio/kafka-go/protocol/describeconfigs"
	"github.com/segmentio/kafka-go/protocol/endtxn"
	"github.com/segmentio/kafka-go/protocol/findcoordinator"
	"github.com/segmentio/kafka-go/protocol/initproducerid"
	"github.com/segmentio/kafka-go/protocol/listoffsets"
	"github.com/segmentio/kafka-go/protocol/metadata"
)

// throttles are until when brokers read nothing from this client, because it has used up a quota (KIP-219). A broker
// says so in an answer, and leaves the connection unread for that time. A request that is sent all the same lies there,
// also when the process that sent it is dead, and is done long after requests of its successor. So nothing is sent
// meanwhile, on none of the connections to the broker.
type throttles struct {
	any atomic.Bool // false is that no broker has ever asked to wait

	mu    sync.Mutex
	until map[int32]time.Time // by broker
}

// note keeps what an answer asks for.
func (t *throttles) note(broker, millis int32) {
	if millis <= 0 {
		return
	}
	until := time.Now().Add(time.Duration(millis) * time.Millisecond)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.until == nil {
		t.until = map[int32]time.Time{}
	}
	if t.until[broker].Before(until) {
		t.until[broker] = until
	}
	t.any.Store(true)
}

func (t *throttles) left(broker int32) time.Duration {
	if !t.any.Load() {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Until(t.until[broker])
}

// throttleOf is how long an answer that kafka-go has read asks to wait, in milliseconds.
func throttleOf(answer protocol.Message) int32 {
	switch a := answer.(type) {
	case *metadata.Response:
		return a.ThrottleTimeMs
	case *listoffsets.Response:
		return a.ThrottleTimeMs
	case *findcoordinator.Response:
		return a.ThrottleTimeMs
	case *initproducerid.Response:
		return a.ThrottleTimeMs
	case *addpartitionstotxn.Response:
		return a.ThrottleTimeMs
	case *endtxn.Response:
		return a.ThrottleTimeMs
	case *createtopics.Response:
		return a.ThrottleTimeMs
	case *describeconfigs.Response:
		return a.ThrottleTimeMs
	}
	return 0
}

// firstOf is throttleOf an answer that begins with it.
func firstOf(body []byte) int32 { return (&input{rest: body}).int32() }

// lastOf is throttleOf an answer that ends with it.
func lastOf(body []byte) int32 {
	if len(body) < 4 {
		return 0
	}
	return int32(binary.BigEndian.Uint32(body[len(body)-4:]))
}
