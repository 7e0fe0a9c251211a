package wire

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// seenRequests are the partitions of each request to write that a scripted cluster has seen.
type seenRequests struct {
	mu   sync.Mutex
	seen [][]int32
}

func (s *seenRequests) all() [][]int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

// watched notes each request, which answer answers, or else the cluster.
func watched(fake *kfake.Cluster, answer func(*kmsg.ProduceRequest, int) (kmsg.Response, error, bool)) *seenRequests {
	s := &seenRequests{}
	fake.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		asked := r.(*kmsg.ProduceRequest)
		var partitions []int32
		for _, topic := range asked.Topics {
			for _, p := range topic.Partitions {
				partitions = append(partitions, p.Partition)
			}
		}
		s.mu.Lock()
		s.seen = append(s.seen, partitions)
		n := len(s.seen)
		s.mu.Unlock()
		return answer(asked, n)
	})
	return s
}

// ledByOne is a cluster in which the first broker leads both partitions.
func ledByOne(t *testing.T, options Options) (*kfake.Cluster, *Cluster, Producer) {
	t.Helper()
	fake, c := scripted(t, 2, options)
	for number := range int32(2) {
		must(t, fake.MoveTopicPartition("t", number, 0))
	}
	return fake, c, producer(t, c)
}

func requestTo(partition int32, p Producer) ProduceRequest {
	r := request(p, 0)
	r.Partition = partition
	return r
}

// both sends a batch to each partition, and returns the errors.
func both(t *testing.T, c *Cluster, p Producer) (errs [2]error) {
	t.Helper()
	first, second := requestTo(0, p), requestTo(1, p)
	c.ProduceAll(t.Context(), []*ProduceRequest{&first, &second}, 1<<20)
	return [2]error{first.Err, second.Err}
}

// TestI3SharedRequestIsRefusedByPartition holds that each partition has its own answer.
func TestI3SharedRequestIsRefusedByPartition(t *testing.T) {
	for _, code := range []int16{kerr.NotLeaderForPartition.Code, 10, 19} {
		fake, c, p := ledByOne(t, Options{})
		seen := watched(fake, func(asked *kmsg.ProduceRequest, n int) (kmsg.Response, error, bool) {
			if n > 1 {
				return nil, nil, false
			}
			answer := asked.ResponseKind().(*kmsg.ProduceResponse)
			answer.Topics = []kmsg.ProduceResponseTopic{{Topic: "t", Partitions: []kmsg.ProduceResponseTopicPartition{
				{Partition: 1, ErrorCode: code, BaseOffset: -1}, {Partition: 0, BaseOffset: 7}}}}
			return answer, nil, true
		})
		errs := both(t, c, p)
		if errs[0] != nil || Code(errs[1]) != code {
			t.Fatalf("code %d for partition 1: %v", code, errs)
		}
		if want := "produce to topic t partition 1"; errs[1].(*Error).Request != want {
			t.Errorf("%v, want it about %q", errs[1], want)
		}
		if _, err := c.Produce(t.Context(), requestTo(1, p)); err != nil {
			t.Error(err)
		}
		if got, want := seen.all(), [][]int32{{0, 1}, {1}}; !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("requests for partitions %v, want %v", got, want)
		}
	}
}

// TestI3SharedRequestIsLost holds that a lost answer is lost for each partition, and that the same bytes go through
// afterwards.
func TestI3SharedRequestIsLost(t *testing.T) {
	for reason, cut := range map[string]error{"disconnected": errors.New("cut"), "timeout": nil} {
		fake, c, p := ledByOne(t, Options{Timeout: 2 * time.Second})
		watched(fake, func(_ *kmsg.ProduceRequest, n int) (kmsg.Response, error, bool) { return nil, cut, n == 1 })
		for number, err := range both(t, c, p) {
			if err == nil || Classify(err) != Retriable || Reason(err) != reason {
				t.Errorf("partition %d: %v, want it retriable, %s", number, err, reason)
			}
		}
		c.Refresh()
		for number := range int32(2) {
			if _, err := settle(t.Context(), func() (int64, error) { return c.Produce(t.Context(), requestTo(number, p)) }); err != nil {
				t.Errorf("partition %d after %s: %v", number, reason, err)
			}
		}
	}
}

// TestSharedRequestsAreBounded holds that a request has one leader, and no more bytes than allowed but in one batch.
func TestSharedRequestsAreBounded(t *testing.T) {
	var batches []*ProduceRequest
	for i, size := range []int{40, 200, 60, 50, 30, 10} {
		batches = append(batches, &ProduceRequest{leader: int32(i % 2), Topic: "t", Partition: int32(9 - i), Batch: make([]byte, size)})
	}
	var got []string
	for _, load := range loads(batches, 100) {
		text := fmt.Sprint("leader ", load[0].leader, ":")
		for _, p := range load {
			text += fmt.Sprint(" ", len(p.Batch))
		}
		got = append(got, text)
	}
	if want := []string{"leader 0: 30 60", "leader 0: 40", "leader 1: 10 50", "leader 1: 200"}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
}
