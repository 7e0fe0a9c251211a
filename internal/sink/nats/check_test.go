package nats

import (
	"cmp"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
)

func check(t *testing.T, options Options) (string, error) {
	t.Helper()
	return newSink(t, options).Check(within(t))
}

// wantNote is what check says of a sink that can be used.
func wantNote(t *testing.T, options Options, want string) {
	t.Helper()
	if note, err := check(t, options); err != nil || note != want {
		t.Errorf("got  %q, %v\nwant %q", note, err, want)
	}
}

const smallNote = "the largest message is 1024 KiB, and objects can have 1536 KiB: a gap record will stand for one that is larger; " +
	"raise max_payload of the server and max_msg_size of the stream to take all"

// TestCheckNotesObjectsThatDoNotFit, and only then. It makes no stream, where it could.
func TestCheckNotesObjectsThatDoNotFit(t *testing.T) {
	wantNote(t, startServer(t).options(), smallNote)
	s := startServer(t, func(o *server.Options) { o.MaxPayload = 8 << 20 })
	wantNote(t, s.options(), "")
	js, ctx := s.admin()
	if _, err := js.Stream(ctx, testStream); err == nil {
		t.Error("the stream was made")
	}
	s.create(jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>"}, MaxMsgSize: 1 << 20})
	wantNote(t, s.options(), smallNote)
}

func TestCheckNamesWhatOpenWouldFailAt(t *testing.T) {
	for _, test := range []struct {
		name   string
		server func(*server.Options)
		sink   func(*Options)
		want   string // what check says
		open   string // "" is the same
	}{
		{"no JetStream for the account", accountWithoutJetStream, func(o *Options) { o.User, o.Password = "u", "p" },
			"look up stream K8S: JetStream is not enabled for the account of the sink's user: enable it for the account", ""},
		{"replicas", nil, func(o *Options) { o.Replicas = 3 },
			"create stream K8S: 3 replicas need a cluster of servers: use 1 replica",
			"create stream K8S: replicas > 1 not supported in non-clustered mode: use 1 replica"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t, test.server)
			options := s.options()
			test.sink(&options)
			_, err := check(t, options)
			wantError(t, err, test.want)
			wantError(t, openError(t, options, ""), cmp.Or(test.open, test.want))
		})
	}
}

// TestCheckTriesOnce, whether nobody listens or nobody answers.
func TestCheckTriesOnce(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	address := listener.Addr().String()
	options := Options{URL: "nats://u:secret@" + address, Stream: testStream, Subjects: []string{"k8s.>"}}
	silent := newSink(t, options)
	silent.tuning.Dial = 50 * time.Millisecond
	_, err = silent.Check(within(t))
	wantError(t, err, "connect to nats://u:xxxxx@"+address+": no answer in time: check the URL, and that the server is up")
	listener.Close()
	_, err = check(t, options)
	wantError(t, err, "connect to nats://u:xxxxx@"+address+": nobody answers there: check the URL, and that the server is up")
}

// TestI10CheckNotesAnotherWriter, who would stop the sink.
func TestI10CheckNotesAnotherWriter(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.MaxPayload = 8 << 20 })
	s.create(jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>"}})
	js, ctx := s.admin()
	if _, err := js.Publish(ctx, "k8s.audit", []byte("x")); err != nil {
		t.Fatal(err)
	}
	const want = `the last message of stream K8S, on subject "k8s.audit", is not from kubecdc: another writer stops the sink: ` +
		"give the exporter a stream of its own with the key stream"
	wantNote(t, s.options(), want)
}

// TestI10CheckNotesALogThatNoStateKnows, whose writer the start would stop.
func TestI10CheckNotesALogThatNoStateKnows(t *testing.T) {
	const want = "stream K8S has messages of kubecdc of which this state knows nothing: with it all objects are sent again, behind them, " +
		"and an exporter that still writes there is stopped until its own next start"
	options := startServer(t).options()
	expect := func(at sink.Mark, want string) {
		t.Helper()
		if note, err := newSink(t, options).CheckMark(within(t), at); err != nil || note != want {
			t.Errorf("mark %q: got %q, %v", at, note, err)
		}
	}
	expect("", "")
	mark := write(t, openSink(t, options), []sink.Message{{ID: "0b6f3c1e/pods/a/x/u/1/added", Destination: "k8s.a"}})
	expect(mark, "")
	expect("", want)
}
