package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// TestTableIsKafkas compares names with an independent table, and "retriable" with what Kafka says where we do not mean
// to differ.
func TestTableIsKafkas(t *testing.T) {
	differ := map[int16]string{
		-1: "nothing is lost by trying again", 2: "the same bytes would have the same checksum", 36: "Create takes it for success",
		51: "the transaction before is still ending", 52: "the coordinator has moved", 55: "follows another error", 60: "passes",
		129: "Refresh does that",
	}
	last := int16(-2)
	for _, r := range table() {
		if r.code <= last {
			t.Errorf("%d comes after %d", r.code, last)
		}
		last = r.code
		theirs := kerr.TypedErrorForCode(r.code)
		// its name until Kafka 2.6
		name := strings.Replace(r.name, "NOT_LEADER_OR_FOLLOWER", "NOT_LEADER_FOR_PARTITION", 1)
		if theirs == nil || theirs.Code != r.code || theirs.Message != name {
			t.Errorf("%d is called %s, want %v", r.code, r.name, theirs)
			continue
		}
		if _, meant := differ[r.code]; (r.class == Retriable) != theirs.Retriable != meant {
			t.Errorf("%s is %s here; Kafka retries it: %t", r.name, r.class, theirs.Retriable)
		}
		if r.cause == "" || r.source == "" || strings.HasSuffix(r.cause+r.remedy, ".") {
			t.Errorf("%s: cause %q, remedy %q, source %q", r.name, r.cause, r.remedy, r.source)
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
	unknown := &Error{Code: 999, Request: "produce"}
	if Classify(unknown) != Retriable || Reason(unknown) != "unknown_999" {
		t.Errorf("a code of tomorrow: %s, %s", Classify(unknown), Reason(unknown))
	}
	if Explain(nil) != nil {
		t.Error("nil is explained")
	}
}
