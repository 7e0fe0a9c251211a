package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzAnswers holds that no bytes of a broker end the program.
func FuzzAnswers(f *testing.F) {
	for _, whole := range []kmsg.Response{scriptedFetch(), scriptedProduce(), kmsg.NewPtrApiVersionsResponse()} {
		f.Add(whole.AppendTo(nil), whole.GetVersion())
	}
	f.Add([]byte("\x7f\xff\xff\xff"), int16(3))
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 2, 't', 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 1, 0, 0, 0, 0, 0}, int16(0))
	f.Add([]byte{0, 0, 0, 0, 0, 2, 0, 0, 2, 'i', 6, 'E', 'm', 'p', 't', 'y', 0, 0, 4, 0}, int16(0))
	f.Fuzz(func(_ *testing.T, body []byte, version int16) {
		if answer, err := answerOf(body, &kmsg.FetchResponse{Version: fetchVersion}); err == nil {
			_, _ = readFetched(answer, &FetchRequest{Topic: "t", Partition: 2})
		}
		if answer, err := answerOf(body, &kmsg.ProduceResponse{Version: 3 + max(version%6, 0)}); err == nil {
			readProduced(answer, []*ProduceRequest{{Topic: "t", Partition: 2}})
		}
		if answer, err := answerOf(body, &kmsg.MetadataResponse{Version: identityVersion}); err == nil {
			_, _ = topicOf(answer, "t")
		}
		_, _ = answerOf(body, kmsg.NewPtrDescribeTransactionsResponse())
		_, _ = answerOf(body, kmsg.NewPtrApiVersionsResponse())
	})
}

// answerOf reads an answer to request 7 of such a body.
func answerOf[Answer kmsg.Response](body []byte, answer Answer) (Answer, error) {
	whole := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(4+len(body))), 7)
	return answer, readAnswer(bytes.NewReader(append(whole, body...)), 7, answer)
}

func TestAnswersToOthersAreRefused(t *testing.T) {
	whole := append([]byte{0, 0, 0, 10, 0, 0, 0, 8}, make([]byte, 6)...)
	if err := readAnswer(bytes.NewReader(whole), 7, kmsg.NewPtrApiVersionsResponse()); err == nil {
		t.Error("the answer to request 8 is taken for that to request 7")
	}
	if err := readAnswer(bytes.NewReader([]byte{0x7f, 0, 0, 0, 0, 0, 0, 7}), 7, kmsg.NewPtrApiVersionsResponse()); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("2 GB are made room for: %v", err)
	}
	answer := kmsg.NewPtrApiVersionsResponse()
	if err := readAnswer(bytes.NewReader(whole), 8, answer); err != nil || len(answer.ApiKeys) != 0 {
		t.Errorf("the answer to request 8 is %+v, %v", answer, err)
	}
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

func TestAnswersAreRead(t *testing.T) {
	fetched, err := answerOf(scriptedFetch().AppendTo(nil), &kmsg.FetchResponse{Version: fetchVersion})
	must(t, err)
	got, err := readFetched(fetched, &FetchRequest{Topic: "t", Partition: 2})
	if err != nil || string(got.RecordBatches) != "records" || len(got.AbortedTransactions) != 2 || got.AbortedTransactions[0].ProducerID != 4 || got.AbortedTransactions[0].FirstOffset != 6 {
		t.Errorf("fetched %+v, %v", got, err)
	}
	here, other := ProduceRequest{Topic: "t", Partition: 2}, ProduceRequest{Topic: "t", Partition: 1}
	readProduced(scriptedProduce(), []*ProduceRequest{&here, &other})
	if answer, ok := here.Err.(*Error); !ok || answer.Code != 87 || answer.Message != "bad" {
		t.Errorf("produced: %+v", here.Err)
	}
	if other.Err == nil || Code(other.Err) != 0 {
		t.Errorf("an answer for another partition is taken: %v", other.Err)
	}
	if _, err := readFetched(scriptedFetch(), &FetchRequest{Topic: "t", Partition: 1}); err == nil {
		t.Error("an answer for another partition is taken")
	}
}
