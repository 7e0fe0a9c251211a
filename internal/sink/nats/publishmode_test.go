package nats

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// TestBatchesWhereServerAndStreamTakeThem: in a stream that is made here, or that allows them. Where another one does
// not, check says so.
func TestBatchesWhereServerAndStreamTakeThem(t *testing.T) {
	for _, test := range []struct {
		name    string
		made    bool
		options func(*Options)
		want    bool
		notes   int
	}{
		{"made", false, func(*Options) {}, true, 0},
		{"made by others", true, func(*Options) {}, false, 1},
		{"single", false, func(o *Options) { o.Single = true }, false, 1},
		{"shared", false, func(o *Options) { o.Shared = true }, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t)
			js, ctx := s.admin()
			if test.made {
				s.create(jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>"}})
			}
			options := s.options()
			test.options(&options)
			publisher := openSink(t, options)
			write(t, publisher, newMaker().Batch(3))
			stream := must(js.Stream(ctx, testStream))
			config := stream.CachedInfo().Config
			var notes []string
			for _, note := range publisher.notes(&config) {
				if strings.Contains(note, "allow_batched") {
					notes = append(notes, note)
				}
			}
			if publisher.stream.batches != test.want || config.AllowBatchPublish != test.want || len(notes) != test.notes {
				t.Errorf("batches %t, %t, notes %q", publisher.stream.batches, config.AllowBatchPublish, notes)
			}
		})
	}
}

// TestBatchesSwitchedOffMeanwhile: the sink goes on without them.
func TestBatchesSwitchedOffMeanwhile(t *testing.T) {
	s, publisher := opened(t)
	maker := newMaker()
	batch := maker.Batch(10)
	write(t, publisher, batch)
	s.change(publisher, func(c *jetstream.StreamConfig) { c.AllowBatchPublish = false })
	more := maker.Batch(10)
	write(t, publisher, more)
	wantIDs(t, s.ids(), idsOf(append(batch, more...)))
	if publisher.stream.batches {
		t.Fatal("it goes on with batches")
	}
}

// TestI3AnswersOfABatch: what each answer proves, and which end the attempt.
func TestI3AnswersOfABatch(t *testing.T) {
	const ack, gap = `{"type":"ack","seq":%,"msgs":2}`, `{"type":"gap","last_seq":3,"seq":5}`
	full := `{"type":"err","seq":4,"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}`
	unknown := `{"error":{"code":400,"err_code":10208,"description":"batch publish ID unknown"},"stream":"K8S","seq":0}`
	end := func(seq, count string) string {
		return `{"stream":"K8S","seq":` + seq + `,"batch":"b","count":` + count + `}`
	}
	for _, test := range []struct {
		name    string
		answers []string
		acked   int
		want    error
	}{
		{"flow", []string{strings.Replace(ack, "%", "0", 1), strings.Replace(ack, "%", "2", 1), strings.Replace(ack, "%", "4", 1)}, 4, nil},
		{"flow twice", []string{strings.Replace(ack, "%", "4", 1), strings.Replace(ack, "%", "2", 1)}, 4, nil},
		{"more than was sent", []string{strings.Replace(ack, "%", "6", 1)}, 0, errMisplaced},
		{"all", []string{end("105", "5")}, 5, nil},
		{"elsewhere", []string{end("106", "5")}, 0, errMisplaced},
		{"ended early", []string{end("103", "3")}, 3, errEnded},
		{"gap, then the end", []string{gap, end("102", "2")}, 2, errGap},
		{"gap, then the end elsewhere", []string{gap, end("103", "2")}, 0, errGap},
		{"full, then the end", []string{full, unknown, end("103", "3")}, 3, &refusal{index: 3}},
		{"no batch", []string{unknown}, 0, &refusal{index: 3}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &publisher{Sink: &Sink{tuning: defaultTuning()}, batch: newMaker().Batch(5), base: 100, sent: 5}
			f := fastBatch{publisher: p, prefix: "i.b.500.fail."}
			var err error
			for _, text := range test.answers {
				if err = f.take(message("i.b.500.fail.4.1.$FI", text)); err != nil {
					break
				}
			}
			var got, want *refusal
			same := errors.Is(err, test.want) || errors.As(err, &got) && errors.As(test.want, &want) && got.index == want.index
			if f.acked != test.acked || !same {
				t.Fatalf("got %d and %v, want %d and %v", f.acked, err, test.acked, test.want)
			}
			if other := f.take(message("i.a.500.fail.4.1.$FI", end("105", "5"))); other != nil || f.acked != test.acked {
				t.Fatalf("the answer to another batch was taken: %d, %v", f.acked, other)
			}
		})
	}
}

// TestI10SecondWriterInsideABatch is noticed at the message that it came before, and nothing after that one is stored.
func TestI10SecondWriterInsideABatch(t *testing.T) {
	s, open := opened(t)
	open.tuning.pending = 2 // an acknowledgement for every message
	batch := newMaker().Batch(4)
	f := newFastBatch(&publisher{Sink: open, batch: batch})
	ctx := within(t)
	for i := range 2 {
		noError(t, f.publish(i))
	}
	for f.acked < 2 {
		noError(t, f.receive(ctx))
	}
	s.publish("k8s.x", "other")
	for i := 2; i < 4; i++ {
		noError(t, f.publish(i))
	}
	var err error
	for err == nil {
		err = f.receive(ctx)
	}
	var refused *refusal
	if !errors.As(err, &refused) || refused.index != 2 || codeOf(err) != jetstream.JSErrCodeStreamWrongLastSequence {
		t.Fatalf("got %v", err)
	}
	wantIDs(t, s.ids(), append(idsOf(batch[:2]), "other"))
}

// TestI3LostEndOfABatchIsAskedFor: a leader that changed does not know what was sent to the old one, and says nothing.
func TestI3LostEndOfABatchIsAskedFor(t *testing.T) {
	_, open := opened(t)
	open.conn.Reply = 500 * time.Millisecond
	f := newFastBatch(&publisher{Sink: open, batch: newMaker().Batch(2)})
	noError(t, f.publish(0))
	f.sent++ // and lost
	f.bytes += f.batch[1].Size()
	var err error
	for ctx := within(t); err == nil || errors.Is(err, conn.ErrSilent); { // on a busy machine the server takes its time
		err = f.receive(ctx)
	}
	if !errors.Is(err, errGap) || f.acked != 1 {
		t.Fatalf("got %d and %v", f.acked, err)
	}
}

// TestI3ForgottenBatch: the server forgets a batch in which nothing happens. The rest goes in another one.
func TestI3ForgottenBatch(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.JetStreamLimits.MaxBatchTimeout = 20 * time.Millisecond })
	open := openSink(t, s.options())
	open.tuning.pending = 2
	batch := newMaker().Batch(4)
	p := &publisher{Sink: open, batch: batch, unsure: true}
	f := newFastBatch(p)
	for i := range 2 {
		noError(t, f.publish(i))
	}
	ctx := within(t)
	var err error
	for codeOf(err) != codeUnknownBatch {
		sink.Pause(ctx, 50*time.Millisecond, nil)
		if err = f.ping(); err == nil {
			err = f.receive(ctx)
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	for err = p.attempt(ctx); err != nil; err = p.attempt(ctx) { // the other one may be forgotten just as well
		if final := open.final(ctx, "write to", err); final != nil {
			t.Fatal(final)
		}
	}
	wantIDs(t, s.ids(), idsOf(batch))
}

// TestI6FlowBringsAnAcknowledgementBeforeTheWindowIsFull, whatever the sizes.
func TestI6FlowBringsAnAcknowledgementBeforeTheWindowIsFull(t *testing.T) {
	for _, test := range []struct{ size, want int }{{100, 500}, {8 << 10, 500}, {1 << 20, 4}, {5 << 20, 1}, {20 << 20, 1}} {
		batch := []sink.Message{{Value: make([]byte, 10)}, {Value: make([]byte, test.size)}}
		p := &publisher{Sink: &Sink{tuning: defaultTuning()}, batch: batch}
		if got := p.flow(); got != test.want {
			t.Errorf("of %d bytes: got %d, want %d", test.size, got, test.want)
		}
	}
}

func message(subject, data string) *natsgo.Msg {
	return &natsgo.Msg{Subject: subject, Data: []byte(data)}
}
