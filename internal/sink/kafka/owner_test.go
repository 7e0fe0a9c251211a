package kafka

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestI10ATopicOfAnotherClusterIsRefused by Check and by Open, before anybody is fenced.
func TestI10ATopicOfAnotherClusterIsRefused(t *testing.T) {
	cluster := broker.Get(t)
	for _, c := range []struct {
		name           string
		same           bool
		cleanup, wants string
	}{
		{"our name", true, "delete", "the key cluster"},
		{"another name", false, "delete", ""},
		{"another name, compacted", false, "compact", "put {cluster} into kafka.topic"},
	} {
		t.Run(c.name, func(t *testing.T) {
			options := testOptions(t, cluster, 1)
			options.Cleanup = c.cleanup
			topic := options.Topics[0]
			other, written := opened(t, options), theirs(topic, 20)
			mustWrite(t, other, written)
			ours := options
			ours.Judge = judgeOf(c.same)
			_, err := answeredCheck(t, ours)
			expectRefusal(t, "check", err, c.wants)
			_, err = sinktest.Open(t.Context(), newTestSink(t, ours), "")
			expectRefusal(t, "open", err, c.wants)
			if c.wants == "" {
				return
			}
			mark := mustWrite(t, other, messagesOf(topic, 3)) // nobody was fenced
			s := newTestSink(t, ours)
			if _, err := sinktest.Open(t.Context(), s, mark); err != nil {
				t.Errorf("open at a mark behind which nothing is: %v", err)
			}
			other = opened(t, options, mark)
			mustWrite(t, other, written[:1])
			_, err = sinktest.Open(t.Context(), newTestSink(t, ours), mark)
			expectRefusal(t, "open at a mark", err, c.wants)
		})
	}
}

func judgeOf(same bool) sink.Judge {
	return func(m *sink.Stored) error {
		if strings.HasPrefix(m.Header(sink.HeaderID), "theirs-") {
			return &sink.ForeignError{Place: m.Place, Cluster: "theirs", UID: "cccccccc", Ours: "ours", Same: same}
		}
		return nil
	}
}

func expectRefusal(t *testing.T, what string, err error, wants string) {
	t.Helper()
	var permanent *sink.PermanentError
	switch {
	case wants == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case wants != "" && (!errors.As(err, &permanent) || !strings.Contains(err.Error(), wants)):
		t.Errorf("%s: %v, want an error that says %q", what, err, wants)
	}
}
