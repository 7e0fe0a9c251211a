package nats

import (
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
)

func TestI4RejectionSaysWhy(t *testing.T) {
	s := startServer(t)
	s.create(jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>", "one"}, MaxMsgSize: 100 << 10})
	publisher := openSink(t, s.options())
	for _, test := range []struct {
		reason, want string
		change       func(*sink.Message)
	}{
		{"invalid", `publish to subject "k8s..x": it has empty parts, wildcards, spaces or control characters`,
			func(m *sink.Message) { m.Destination = "k8s..x" }},
		{"invalid", `publish to subject "k8s.*": it has empty parts, wildcards, spaces or control characters`,
			func(m *sink.Message) { m.Destination = "k8s.*" }},
		{"invalid", `publish to subject "": it has empty parts, wildcards, spaces or control characters`,
			func(m *sink.Message) { m.Destination = "" }},
		{"invalid", `publish to subject "two": stream K8S takes ["k8s.>" "one"] only`,
			func(m *sink.Message) { m.Destination = "two" }},
		{"invalid", `publish header "a b": its name is not a token`,
			func(m *sink.Message) { m.Headers = []sink.Header{{Name: "a b"}} }},
		{"invalid", `publish header "nats-rollup": its name is one of the server's`,
			func(m *sink.Message) { m.Headers = []sink.Header{{Name: "nats-rollup", Value: "all"}} }},
		{"invalid", `publish header "a": its value has line breaks, or spaces around it`,
			func(m *sink.Message) { m.Headers = []sink.Header{{Name: "a", Value: "b\nc: d"}} }},
		{"too_large", `publish 1048707 bytes: the server takes 1048576: raise its max_payload`,
			func(m *sink.Message) { m.Value = make([]byte, 1<<20) }},
		{"too_large", `publish 102531 bytes: stream K8S takes 102400: raise its max_msg_size`,
			func(m *sink.Message) { m.Value = make([]byte, 100<<10) }},
		{"too_large", `publish 65670 bytes of headers: JetStream takes 65535`,
			func(m *sink.Message) {
				m.Headers, m.Value = []sink.Header{{Name: "a", Value: string(make([]byte, 64<<10-2))}}, nil
			}},
	} {
		bad := sink.Message{ID: "c/pods/a/x/u/1/added", Op: "added", ResourceVersion: "1", Destination: "one"}
		test.change(&bad)
		_, err := publisher.Write(within(t), []sink.Message{bad})
		wantError(t, wantRejected(t, err, 0, test.reason), test.want)
	}
	wantIDs(t, s.ids(), nil)
}

// TestI4LargestMessage is one byte below each limit: the size that is computed is the size that the server sees.
func TestI4LargestMessage(t *testing.T) {
	s, publisher := opened(t)
	batch := newMaker().Batch(2)
	batch[0].Value = make([]byte, 1<<20-headerSize(&batch[0]))
	batch[1].Headers = []sink.Header{{Name: "a", Value: string(make([]byte, 1))}}
	batch[1].Headers[0].Value += string(make([]byte, maxHeaders-headerSize(&batch[1])))
	write(t, publisher, batch)
	wantIDs(t, s.ids(), idsOf(batch))
}

// TestI4LimitLoweredMeanwhile: the sink does not know of the limit until the server refuses.
func TestI4LimitLoweredMeanwhile(t *testing.T) {
	s, publisher := opened(t)
	s.change(publisher, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 5000 })
	maker := newMaker()
	batch := append(maker.Batch(3), maker.Message(6000))
	batch = append(batch, maker.Batch(3)...)
	mark, err := publisher.Write(within(t), batch)
	wantRejected(t, err, 3, "too_large")
	if mark != publisher.stream.place.text() {
		t.Fatalf("the mark is %v", mark)
	}
	write(t, publisher, batch[4:])
	wantIDs(t, s.ids(), idsOf(slices.Delete(batch, 3, 4)))
}

// TestRaisedLimitIsNoticed without opening the sink again: what was rejected fits now.
func TestRaisedLimitIsNoticed(t *testing.T) {
	s, publisher := opened(t)
	resize := func(limit int32) {
		s.change(publisher, func(c *jetstream.StreamConfig) { c.MaxMsgSize = limit })
	}
	resize(5000)
	openAt(t, publisher, "") // the sink knows the limit
	large := newMaker().Message(6000)
	_, err := publisher.Write(within(t), []sink.Message{large})
	wantRejected(t, err, 0, "too_large")
	resize(0)
	write(t, publisher, []sink.Message{large})
	wantIDs(t, s.ids(), idsOf([]sink.Message{large}))
}

// TestI4FullStreamWaits loses nothing, and goes on when there is room.
func TestI4FullStreamWaits(t *testing.T) {
	s := startServer(t)
	js, ctx := s.admin()
	full := 0
	options := s.options()
	options.MaxBytes, options.DiscardNew = 64<<10, true
	options.Retry = func(reason string, _ error) {
		if reason != "limits" {
			return // the messages after the first refused one
		}
		full++
		stream := must(js.Stream(ctx, testStream))
		noError(t, stream.Purge(ctx))
	}
	publisher := openSink(t, options)
	batch := benchBatch(1<<10, 200, new(int))[:200]
	mark := write(t, publisher, batch)
	if full < 3 || publisher.stream.place.Seq != 200 || mark != publisher.stream.place.text() {
		t.Fatalf("full %d times, at %s", full, mark)
	}
	ids := s.ids()
	wantIDs(t, ids, idsOf(batch[200-len(ids):]))
}

// TestI4LongSubjectIsRejected as a message, before the server cuts the connection for it: what comes before it is
// stored, and the sink goes on.
func TestI4LongSubjectIsRejected(t *testing.T) {
	s, open := opened(t)
	fits := "k8s." + strings.Repeat("r", open.stream.maxSubject-len("k8s."))
	batch := newMaker().Batch(6)
	batch[2].Destination, batch[3].Destination, batch[4].Destination = fits, fits+"r", "k8s."+strings.Repeat("r", 300_000)
	mark, err := open.Write(within(t), batch)
	for _, long := range []int{3, 0} {
		wantRejected(t, err, long, "invalid")
		if len(err.Error()) > 500 || mark == "" {
			t.Fatalf("got %v", err)
		}
		batch = batch[long+1:]
		mark, err = open.Write(within(t), batch)
	}
	if err != nil || open.conn.Generation() != 0 {
		t.Fatalf("got %v; the connection was lost %d times", err, open.conn.Generation())
	}
	if stored := s.stored(); len(stored) != 4 || stored[2].Destination != fits {
		t.Fatalf("%d messages are stored, the third is not on the long subject", len(stored))
	}
}

// TestI3ALineBreakMakesNoHeader, whatever a server says the version is.
func TestI3ALineBreakMakesNoHeader(t *testing.T) {
	s, publisher := opened(t)
	batch := newMaker().Batch(1)
	batch[0].ResourceVersion = "1\r\nNats-Rollup: all"
	write(t, publisher, batch)
	headers := s.stored()[0].Headers
	if len(headers) == 0 || slices.ContainsFunc(headers, func(h sink.Header) bool { return strings.EqualFold(h.Name, "Nats-Rollup") }) {
		t.Errorf("the message has the headers %q", headers)
	}
}
