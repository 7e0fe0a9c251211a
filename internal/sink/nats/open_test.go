package nats

import (
	"errors"
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
		c.Replicas != 1 || !c.AllowDirect || c.Duplicates != 100*time.Millisecond {
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

func TestOpenRefusesAMarkOfAnotherKind(t *testing.T) {
	s := startServer(t)
	wantError(t, openError(t, s.options(), `{"offset":12}`),
		`read mark "{\"offset\":12}": not a place in a stream: the saved state belongs to another kind of sink`)
}

func TestI10OpenFindsAnotherPublisher(t *testing.T) {
	s, first := opened(t)
	before := write(t, first, nil)
	write(t, first, newMaker().Batch(2))
	s.publish("k8s.by.hand", "order-17")
	wantError(t, openError(t, s.options(), before), `open stream K8S: message 3 on subject "k8s.by.hand" is not from kubecdc: `+
		`another writer publishes into the stream: give the exporter a stream of its own with the key stream`)
}

// TestI1OpenSkipsDeletedMessages: what a limit, a consumer or a person took away is not reported, the rest is.
func TestI1OpenSkipsDeletedMessages(t *testing.T) {
	s, first := opened(t)
	before := write(t, first, nil)
	batch := newMaker().Batch(100)
	write(t, first, batch)
	js, ctx := s.admin()
	stream := must(js.Stream(ctx, testStream))
	want := slices.Clone(batch)
	for seq := uint64(99); seq > 0; seq -= 3 {
		noError(t, stream.DeleteMsg(ctx, seq))
		want = slices.Delete(want, int(seq)-1, int(seq))
	}
	wantIDs(t, openAt(t, newSink(t, s.options()), before), idsOf(want))
}
