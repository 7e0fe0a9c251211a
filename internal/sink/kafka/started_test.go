package kafka

import (
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// TestCheckOfBrokersThatHaveJustStarted: they answer, and cannot tell yet who leads a topic and who gives producer ids.
func TestCheckOfBrokersThatHaveJustStarted(t *testing.T) {
	fake := newFake(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	var early atomic.Int32
	again := func(answer func(kmsg.Request) kmsg.Response) func(kmsg.Request) (kmsg.Response, error, bool) {
		left := 3
		return func(r kmsg.Request) (kmsg.Response, error, bool) {
			fake.KeepControl()
			response := answer(r)
			if left == 0 || response == nil {
				return nil, nil, false
			}
			left--
			early.Add(1)
			return response, nil, true
		}
	}
	fake.ControlKey(int16(kmsg.InitProducerID), again(func(r kmsg.Request) kmsg.Response {
		response := r.(*kmsg.InitProducerIDRequest).ResponseKind().(*kmsg.InitProducerIDResponse)
		response.ErrorCode = 14 // COORDINATOR_LOAD_IN_PROGRESS
		return response
	}))
	fake.ControlKey(int16(kmsg.Metadata), again(func(r kmsg.Request) kmsg.Response {
		request := r.(*kmsg.MetadataRequest)
		if len(request.Topics) == 0 {
			return nil
		}
		response := request.ResponseKind().(*kmsg.MetadataResponse)
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic, topic.ErrorCode = request.Topics[0].Topic, 5 // LEADER_NOT_AVAILABLE
		response.Topics = append(response.Topics, topic)
		return response
	}))
	options := Options{Wire: wire.Options{Brokers: fake.ListenAddrs()}, Topics: []string{"t"}}
	if note, err := newTestSink(t, options).Check(within(t)); err != nil {
		t.Errorf("got %q, %v", note, err)
	}
	if early.Load() != 6 {
		t.Errorf("%d answers were early, want 6", early.Load())
	}
}
