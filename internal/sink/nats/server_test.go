package nats

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/natsserver"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// TestMain leaves out what a server leaves behind of a mirror whose origin does not exist.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*stream).setupMirrorConsumer.func3"),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*stream).trySetupSourceConsumer.func3"))
}

const (
	testStream = "K8S"
	limit      = 2 * time.Minute // for what does not end by itself if it fails
)

// testServer is a real server with its streams on disk, which can be restarted at its address.
type testServer struct {
	t testing.TB
	*natsserver.Server
}

func startServer(t testing.TB, changes ...func(*server.Options)) *testServer {
	t.Helper()
	return &testServer{t, natsserver.Start(t, changes...)}
}

// admin is a connection that the sink knows nothing of.
func (s *testServer) admin(options ...natsgo.Option) (jetstream.JetStream, context.Context) {
	s.t.Helper()
	return natsserver.Connect(s.t, s.URL(), options...), s.t.Context()
}

// stored reads the stream as somebody would who knows nothing of the sink.
func (s *testServer) stored(options ...natsgo.Option) []sinktest.Stored {
	s.t.Helper()
	js, _ := s.admin(options...)
	defer js.Conn().Close()
	all, err := readStream(s.t.Context(), js)
	noError(s.t, err)
	return all
}

func storedMessage(m *jetstream.RawStreamMsg) sinktest.Stored {
	stored := sinktest.Stored{ID: m.Header.Get(sink.HeaderID), Value: m.Data, Destination: m.Subject}
	if len(m.Data) == 0 {
		stored.Value = nil // JetStream knows no difference
	}
	for name, values := range m.Header {
		for _, value := range values {
			stored.Headers = append(stored.Headers, sink.Header{Name: name, Value: value})
		}
	}
	return stored
}

func (s *testServer) ids(options ...natsgo.Option) []string {
	s.t.Helper()
	var ids []string
	for _, stored := range s.stored(options...) {
		ids = append(ids, stored.ID)
	}
	return ids
}

// truncate cuts the newest half off the stream's file, as a machine does that loses what it had not synced.
func (s *testServer) truncate() {
	s.t.Helper()
	s.Stop()
	messages := filepath.Join(s.Options.StoreDir, "jetstream", "$G", "streams", testStream, "msgs")
	block := filepath.Join(messages, "1.blk")
	info, err := os.Stat(block)
	noError(s.t, err)
	noError(s.t, os.Truncate(block, info.Size()/2))
	noError(s.t, os.Remove(filepath.Join(messages, "index.db")))
	s.Restart(s.t)
}

// create makes a stream as one who may.
func (s *testServer) create(config jetstream.StreamConfig) jetstream.Stream {
	s.t.Helper()
	js, ctx := s.admin(natsgo.UserInfo("admin", "p"))
	stream, err := js.CreateStream(ctx, config)
	noError(s.t, err)
	return stream
}

// change gives the stream that the sink has made other settings.
func (s *testServer) change(of *Sink, set func(*jetstream.StreamConfig)) {
	s.t.Helper()
	js, ctx := s.admin()
	config := of.newStream()
	set(config)
	if _, err := js.UpdateStream(ctx, *config); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testServer) deleteStream() {
	s.t.Helper()
	js, ctx := s.admin()
	noError(s.t, js.DeleteStream(ctx, testStream))
}

// publish puts a message into the stream that is not the sink's.
func (s *testServer) publish(subject, id string) {
	s.t.Helper()
	js, ctx := s.admin()
	m := natsgo.NewMsg(subject)
	if id != "" {
		m.Header.Set(sink.HeaderID, id)
	}
	if _, err := js.PublishMsg(ctx, m); err != nil {
		s.t.Fatal(err)
	}
}

// options are for a sink on the server.
func (s *testServer) options() Options {
	return Options{URL: s.URL(), Stream: testStream, Subjects: []string{"k8s.>"}}
}

// newSink is a sink that is closed with the test.
func newSink(t testing.TB, options Options) *Sink {
	t.Helper()
	s, err := New(options)
	noError(t, err)
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// opened is a server with an open sink.
func opened(t testing.TB) (*testServer, *Sink) {
	s := startServer(t)
	return s, openSink(t, s.options())
}

// proxied is a server behind a network, with options for a sink there.
func proxied(t testing.TB) (*testServer, *proxy, Options) {
	s := startServer(t)
	network, options := startProxy(t, s.Addr().String()), s.options()
	options.URL = network.url()
	return s, network, options
}

func openSink(t testing.TB, options Options) *Sink {
	t.Helper()
	s := newSink(t, options)
	openAt(t, s, "")
	return s
}

// openAt opens the sink, and returns the ids of what follows the mark.
func openAt(t testing.TB, s *Sink, mark sink.Mark) []string {
	t.Helper()
	ids, err := sinktest.Open(within(t), s, mark)
	noError(t, err)
	return ids
}

// within ends after far more time than anything here takes on a busy machine.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func write(t testing.TB, s *Sink, batch []sink.Message) sink.Mark {
	t.Helper()
	mark, err := s.Write(within(t), batch)
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	return mark
}

func newMaker() *sinktest.Maker {
	return &sinktest.Maker{Destination: destination}
}

func destination(number int) string {
	return [...]string{"k8s.test.core.pods.shop.web", "k8s.test.core.pods.-.a=2Eb", "k8s.x"}[number%3]
}

func idsOf(batch []sink.Message) []string {
	ids := make([]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].ID
	}
	return ids
}

func wantIDs(t *testing.T, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("message %d is %s, want %s", i, got[i], want[i])
		}
	}
	t.Fatalf("%d messages, want %d", len(got), len(want))
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Fatalf("got  %v\nwant %s", err, want)
	}
}

// wantRejected returns why the message is rejected.
func wantRejected(t *testing.T, err error, index int, reason string) error {
	t.Helper()
	rejected, is := errors.AsType[*sink.RejectedError](err)
	if !is || rejected.Index != index || rejected.Reason != reason {
		t.Fatalf("got %#v, want message %d to be rejected as %s", err, index, reason)
	}
	return rejected.Err
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
