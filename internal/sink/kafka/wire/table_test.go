package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestTableIsKafkas compares "retriable" with what Kafka says where we do not mean to differ.
func TestTableIsKafkas(t *testing.T) {
	differ := map[int16]string{
		-1: "nothing is lost by trying again", 2: "the same bytes would have the same checksum",
		51: "the transaction before is still ending",
	}
	last := int16(-2)
	for _, r := range table() {
		if r.of.Code <= last {
			t.Errorf("%d comes after %d", r.of.Code, last)
		}
		last = r.of.Code
		if _, meant := differ[r.of.Code]; (r.class == Retriable) != r.of.Retriable != meant {
			t.Errorf("%s is %s here; Kafka retries it: %t", r.name(), r.class, r.of.Retriable)
		}
		if r.cause == "" || strings.HasSuffix(r.cause+r.remedy, ".") {
			t.Errorf("%s: cause %q, remedy %q", r.name(), r.cause, r.remedy)
		}
	}
}

func TestExplain(t *testing.T) {
	denied := &Error{Code: 29, Message: "no", Request: "produce to topic t partition 3", Needs: "WRITE on topic t"}
	explained := Explain(denied)
	want := "produce to topic t partition 3: Kafka's error 29 TOPIC_AUTHORIZATION_FAILED: no: the user is not permitted: grant the user WRITE on topic t"
	if explained.Error() != want {
		t.Errorf("explained as %q, want %q", explained, want)
	}
	if !errors.As(explained, new(*sink.PermanentError)) || Classify(explained) != Fatal || Code(explained) != 29 || Reason(explained) != "topic_authorization_failed" {
		t.Errorf("explained: %#v", explained)
	}
	if twice := Explain(explained); twice.Error() != want {
		t.Errorf("explained twice: %q", twice)
	}
	moved := Explain(&Error{Code: 6, Request: "produce"})
	if errors.As(moved, new(*sink.PermanentError)) || moved.Error() != "produce: Kafka's error 6 NOT_LEADER_OR_FOLLOWER: the leader has moved" {
		t.Errorf("explained as %q", moved)
	}
	passing := Explain(&Error{Code: 60, Request: "produce"})
	if want := "produce: Kafka's error 60 REASSIGNMENT_IN_PROGRESS: a partition reassignment is in progress"; Classify(passing) != Retriable || passing.Error() != want {
		t.Errorf("a code that is not in the table: %q, want %q", passing, want)
	}
	unknown := &Error{Code: 999, Request: "produce"}
	if Classify(unknown) != Retriable || Reason(unknown) != "unknown_999" {
		t.Errorf("a code of tomorrow: %s, %s", Classify(unknown), Reason(unknown))
	}
	if Explain(nil) != nil {
		t.Error("nil is explained")
	}
}
