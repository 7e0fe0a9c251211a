package wire

import (
	"bytes"
	"testing"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzAnswers holds that no bytes of a broker end the program, and that what an independent decoder reads is what we
// read.
func FuzzAnswers(f *testing.F) {
	f.Add(scriptedFetch().AppendTo(nil), int16(fetchVersion))
	f.Add(scriptedProduce().AppendTo(nil), int16(8))
	f.Add([]byte("\x7f\xff\xff\xff"), int16(3))
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		compareFetched(t, body)
		compareProduced(t, body, 3+max(version%6, 0))
	})
}

func scriptedFetch() *kmsg.FetchResponse {
	partition := kmsg.FetchResponseTopicPartition{Partition: 2, HighWatermark: 9, LastStableOffset: 8, LogStartOffset: 1, RecordBatches: []byte("records"),
		AbortedTransactions: []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 5, FirstOffset: 7}, {ProducerID: 4, FirstOffset: 6}}}
	return &kmsg.FetchResponse{Version: fetchVersion, Topics: []kmsg.FetchResponseTopic{{Topic: "t", Partitions: []kmsg.FetchResponseTopicPartition{partition}}}}
}

func scriptedProduce() *kmsg.ProduceResponse {
	partition := kmsg.ProduceResponseTopicPartition{Partition: 2, ErrorCode: 87, BaseOffset: 3, LogAppendTime: 1000, LogStartOffset: 1, ErrorMessage: kmsg.StringPtr("bad"),
		ErrorRecords: []kmsg.ProduceResponseTopicPartitionErrorRecord{{RelativeOffset: 4, ErrorMessage: kmsg.StringPtr("worse")}}}
	return &kmsg.ProduceResponse{Version: 8, Topics: []kmsg.ProduceResponseTopic{{Topic: "t", Partitions: []kmsg.ProduceResponseTopicPartition{partition}}}}
}

func compareFetched(t *testing.T, body []byte) {
	ours, err := readFetched(led{message: &frame{protocol.Fetch, body}}, &FetchRequest{Topic: "t", Partition: 2})
	theirs := kmsg.FetchResponse{Version: fetchVersion}
	if err != nil || theirs.ReadFrom(body) != nil {
		return
	}
	p := theirs.Topics[0].Partitions[0]
	if !bytes.Equal(ours.Records, p.RecordBatches) || len(ours.Aborted) != len(p.AbortedTransactions) {
		t.Errorf("read %+v, want %+v", ours, p)
	}
}

func compareProduced(t *testing.T, body []byte, version int16) {
	ours := parcel{ProduceRequest: ProduceRequest{Topic: "t", Partition: 2}}
	readProduced(&versioned{&frame{protocol.Produce, body}, version}, []*parcel{&ours})
	theirs := kmsg.ProduceResponse{Version: version}
	if theirs.ReadFrom(body) != nil || ours.err != nil && Code(ours.err) == 0 {
		return
	}
	var last kmsg.ProduceResponseTopicPartition
	for _, topic := range theirs.Topics {
		for _, p := range topic.Partitions {
			if topic.Topic == "t" && p.Partition == 2 {
				last = p
			}
		}
	}
	if ours.result.BaseOffset != last.BaseOffset || Code(ours.err) != last.ErrorCode {
		t.Errorf("read %+v, want %+v", ours, last)
	}
}

func TestAnswersAreRead(t *testing.T) {
	got, err := readFetched(led{message: &frame{protocol.Fetch, scriptedFetch().AppendTo(nil)}}, &FetchRequest{Topic: "t", Partition: 2})
	if err != nil || string(got.Records) != "records" || len(got.Aborted) != 2 || got.Aborted[0] != (Aborted{4, 6}) {
		t.Errorf("fetched %+v, %v", got, err)
	}
	here, other := parcel{ProduceRequest: ProduceRequest{Topic: "t", Partition: 2}}, parcel{ProduceRequest: ProduceRequest{Topic: "t", Partition: 1}}
	readProduced(&versioned{&frame{protocol.Produce, scriptedProduce().AppendTo(nil)}, 8}, []*parcel{&here, &other})
	if answer, ok := here.err.(*Error); !ok || answer.Code != 87 || answer.Message != "bad" || answer.Records[4] != "worse" {
		t.Errorf("produced: %+v", here.err)
	}
	if other.err == nil || Code(other.err) != 0 {
		t.Errorf("an answer for another partition is taken: %v", other.err)
	}
	if _, err := readFetched(led{message: &frame{protocol.Fetch, scriptedFetch().AppendTo(nil)}}, &FetchRequest{Topic: "t", Partition: 1}); err == nil {
		t.Error("an answer for another partition is taken")
	}
}
