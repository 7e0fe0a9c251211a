package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// openError is the PermanentError that the first Open ends with.
func openError(t *testing.T, options Options, text sink.Mark) error {
	t.Helper()
	_, err := sinktest.Open(within(t), newSink(t, options), text)
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) {
		t.Fatalf("got %v, want a PermanentError", err)
	}
	return err
}

func TestOpenMakesTheStream(t *testing.T) {
	s := startServer(t)
	options := s.options()
	options.MaxAge, options.MaxBytes, options.DiscardNew = time.Hour, 1<<30, true
	openSink(t, options)
	js, ctx := s.admin()
	stream := must(js.Stream(ctx, testStream))
	c := stream.CachedInfo().Config
	if !slices.Equal(c.Subjects, options.Subjects) || c.Storage != jetstream.FileStorage || c.MaxAge != time.Hour ||
		c.Retention != jetstream.LimitsPolicy || c.Discard != jetstream.DiscardNew || c.MaxBytes != 1<<30 ||
		c.Replicas != 1 || !c.AllowDirect || !c.AllowBatchPublish || c.Duplicates != 100*time.Millisecond {
		t.Fatalf("got %+v", c)
	}
}

// TestOpenRefusesABucketThatForgets where all of it is needed.
func TestOpenRefusesABucketThatForgets(t *testing.T) {
	s := startServer(t)
	js, ctx := s.admin()
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "forgets", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	options := s.options()
	options.Stream, options.Subjects, options.KV, options.Whole = "", nil, "forgets", true
	wantError(t, openError(t, options, ""),
		"open stream KV_forgets: it forgets values, by their age or at a limit: give it no max_age, and no limit or discard new")
}

func accountWithoutJetStream(o *server.Options) {
	plain, system := server.NewAccount("PLAIN"), server.NewAccount("SYS")
	o.Accounts = []*server.Account{plain, system}
	o.SystemAccount = "SYS"
	o.Users = []*server.User{{Username: "u", Password: "p", Account: plain}}
}

// TestOpenRetriesAnUnreachableServer also shows that a configuration's server may start after the exporter.
func TestOpenRetriesAnUnreachableServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var reasons []string
	s := newSink(t, Options{URL: "nats://u:secret@" + address, Stream: testStream, Subjects: []string{"k8s.>"},
		Retry: func(reason string, err error) {
			reasons = append(reasons, reason)
			wantError(t, err, "connect to nats://u:xxxxx@"+address+": nobody answers there: check the URL, and that the server is up")
			if len(reasons) == 3 {
				cancel()
			}
		}})
	_, err = sinktest.Open(ctx, s, "")
	wantError(t, err, "open stream K8S: context canceled: the last attempt failed: connect to nats://u:xxxxx@"+address+
		": nobody answers there: check the URL, and that the server is up")
	if !errors.Is(err, context.Canceled) || !slices.Equal(reasons, []string{"disconnected", "disconnected", "disconnected"}) {
		t.Fatalf("got %v and %q", err, reasons)
	}
}

func TestI4MarkOfAnotherStreamIsLost(t *testing.T) {
	s := startServer(t)
	first := openSink(t, s.options())
	write(t, first, newMaker().Batch(3))
	old := first.stream.place
	s.deleteStream()
	again := newSink(t, s.options())
	ids, err := sinktest.Open(within(t), again, old.text())
	var lost *sink.LostError
	if !errors.As(err, &lost) || ids != nil {
		t.Fatalf("got %q and %v, want a LostError", ids, err)
	}
	wantError(t, err, fmt.Sprintf("stream K8S lost acknowledged records: it ends at sequence 0 of stream K8S made at %s, "+
		"before the saved mark sequence 3 of stream K8S made at %s",
		again.stream.place.Created.Format(time.RFC3339Nano), old.Created.Format(time.RFC3339Nano)))
	batch := newMaker().Batch(2)
	write(t, again, batch)
	wantIDs(t, s.ids(), idsOf(batch))
}

func TestOpenRefusesAMarkOfAnotherKind(t *testing.T) {
	s := startServer(t)
	wantError(t, openError(t, s.options(), `{"offset":12}`),
		`read mark "{\"offset\":12}": not a place in a stream: the saved state belongs to another kind of sink`)
}

func TestI10OpenFindsAnotherPublisher(t *testing.T) {
	s := startServer(t)
	first := openSink(t, s.options())
	before := write(t, first, nil)
	write(t, first, newMaker().Batch(2))
	s.publish("k8s.by.hand", "order-17")
	wantError(t, openError(t, s.options(), before), `open stream K8S: message 3 on subject "k8s.by.hand" is not from kubecdc: `+
		`another writer publishes into the stream: give the exporter a stream of its own, or say that it is shared`)
}

// TestI1OpenSkipsDeletedMessages: what a limit, a consumer or a person took away is not reported, the rest is.
func TestI1OpenSkipsDeletedMessages(t *testing.T) {
	s := startServer(t)
	first := openSink(t, s.options())
	before := write(t, first, nil)
	batch := newMaker().Batch(100)
	write(t, first, batch)
	js, ctx := s.admin()
	stream := must(js.Stream(ctx, testStream))
	want := slices.Clone(batch)
	for seq := uint64(99); seq > 0; seq -= 3 {
		if err := stream.DeleteMsg(ctx, seq); err != nil {
			t.Fatal(err)
		}
		want = slices.Delete(want, int(seq)-1, int(seq))
	}
	ids := openAt(t, newSink(t, s.options()), before)
	wantIDs(t, ids, idsOf(want))
}
