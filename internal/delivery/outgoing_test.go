package delivery

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// paired makes two messages of each record, and none of one whose object is "bad". A message has the record's object
// and the state before in it.
type paired struct{}

func (paired) Encode(_ context.Context, dst []sink.Message, rec *change.Record) ([]sink.Message, error) {
	if string(rec.Object) == "bad" {
		return dst, &sink.RejectedError{Reason: "unencodable", Err: errors.New("bad")}
	}
	m := sink.Message{ID: rec.ID("u").String(), Value: append(append([]byte{}, rec.Object...), rec.Before...)}
	return append(dst, m, m), nil
}

func (paired) Reset() {}

func numbered(n int, object string) *change.Record {
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods"}}, Op: change.Updated,
		Key: change.Key{Name: fmt.Sprint("web-", n)}, UID: "u", ResourceVersion: fmt.Sprint(n), Object: []byte(object),
	}
}

func TestMessageIsFoundInItsRecord(t *testing.T) {
	o := &outgoing{ends: []int{1, 3, 4, 6}}
	for message, want := range []int{0, 1, 1, 2, 3, 3, 4} {
		if got := o.recordOf(message); got != want {
			t.Errorf("message %d is of record %d, want %d", message, got, want)
		}
	}
}

// TestABatchIsEncodedUpToWhatCannotBe, and of that alone there is a message with its id.
func TestABatchIsEncodedUpToWhatCannotBe(t *testing.T) {
	o := newOutgoing(&Sink{Encoder: paired{}}, "u")
	bad := numbered(3, "bad")
	messages, err := o.encode(t.Context(), []*change.Record{numbered(1, "{}"), numbered(2, "{}"), bad, numbered(4, "{}")})
	var rejected *sink.RejectedError
	if !errors.As(err, &rejected) || len(messages) != 4 || o.encoded() != 2 {
		t.Errorf("%d messages of %d records, %v", len(messages), o.encoded(), err)
	}
	if m, err := o.messageOf(t.Context(), bad); err != nil || m.ID != bad.ID("u").String() || m.Value != nil {
		t.Errorf("the bad one's message is %+v, %v", m, err)
	}
}
