package nats

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

const otherUID = "99999999-0000-4000-8000-000000000000"

// judged are options of a sink of cluster prod, whose uid is that of newMaker's records.
func judged(o Options, named bool) Options {
	owner := decode.Owner{Cluster: "prod", UIDs: []string{"0a1b2c3d-0000"}, Named: named}
	o.Judge = owner.Judge
	return o
}

// theirs are messages as an exporter of another cluster writes them, under the name.
func theirs(n int, name string) []sink.Message {
	batch := newMaker().Batch(n)
	for i := range batch {
		_, rest, _ := strings.Cut(batch[i].ID, "/")
		batch[i].ID = otherUID[:8] + "/" + rest
		batch[i].Value = fmt.Appendf(nil, `{"specversion":"1.0","id":%q,"cluster":%q}`, batch[i].ID, name)
	}
	return batch
}

// makeStream makes one by hand.
func (s *testServer) makeStream(name string, subjects ...string) {
	s.t.Helper()
	js, ctx := s.admin()
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: subjects, Duplicates: window}); err != nil {
		s.t.Fatal(err)
	}
}

// TestI10AnotherClustersStreamIsRefused at the start and by check, which name the key to set.
func TestI10AnotherClustersStreamIsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Options)
		theirs string // name of the other cluster
		want   string // "" is nothing to refuse
	}{
		{"the same name", nil, "prod", "give each cluster a name of its own with the key cluster"},
		{"the same name, shared", func(o *Options) { o.Shared = true }, "prod", "give each cluster a name of its own with the key cluster"},
		{"another name", nil, "test", "give each cluster a stream of its own with the key stream"},
		{"another name, shared", func(o *Options) { o.Shared = true }, "test", ""},
		{"a bucket", func(o *Options) { o.Stream, o.Subjects, o.KV = "", nil, "NOW" }, "test", "give each cluster a bucket of its own with the key kv"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t)
			options := s.options()
			if test.change != nil {
				test.change(&options)
			}
			batch := theirs(3, test.theirs)
			if options.KV != "" {
				for i := range batch {
					batch[i].Destination = fmt.Sprintf("$KV.NOW.pods.%d", i)
				}
			}
			write(t, openSink(t, options), batch)
			ours := judged(options, false)
			_, checkErr := check(t, ours)
			_, openErr := sinktest.Open(within(t), newSink(t, ours), "")
			for what, err := range map[string]error{"check": checkErr, "open": openErr} {
				var permanent *sink.PermanentError
				if test.want == "" && err == nil {
					continue
				}
				if test.want == "" || !errors.As(err, &permanent) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), otherUID[:8]) {
					t.Errorf("%s: got %v, want %q", what, err, test.want)
				}
			}
		})
	}
}

// TestI4AnotherClustersRecordsAreNotOurs: after the mark lie records of another cluster, of another subject and of
// another writer. A stream of our own has none of another cluster's; of what is not ours nothing is returned.
func TestI4AnotherClustersRecordsAreNotOurs(t *testing.T) {
	s := startServer(t)
	mine := judged(s.options(PublishOrdered), true)
	first := openSink(t, mine)
	before := write(t, first, nil)
	batch := newMaker().Batch(4)
	write(t, first, batch)
	s.publish("k8s.another.subject", batch[0].ID)
	narrow := mine
	narrow.Subjects = []string{"k8s.test.>", "k8s.x"}
	ids, err := sinktest.Open(within(t), newSink(t, narrow), before)
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, ids, idsOf(batch))
	s.publish("k8s.x", theirs(1, "prod")[0].ID)
	_, err = sinktest.Open(within(t), newSink(t, mine), before)
	var foreign *sink.ForeignError
	if !errors.As(err, &foreign) || foreign.UID != otherUID[:8] || !strings.Contains(err.Error(), "key cluster") {
		t.Fatalf("got %v", err)
	}
}

// TestI3SharedStreamOfAnOlderVersion: a mark of an older version names no writer, and what lies after it has bare ids.
func TestI3SharedStreamOfAnOlderVersion(t *testing.T) {
	s := startServer(t)
	options := judged(s.options(), true)
	options.Shared = true
	first := openSink(t, options)
	write(t, first, nil)
	place := first.stream.place
	place.Writer, place.Held = "", nil
	batch := newMaker().Batch(3)
	js, ctx := s.admin()
	for _, m := range append(batch[:2:2], theirs(1, "prod")...) {
		msg := natsgo.NewMsg("k8s.x")
		msg.Header.Set(sink.HeaderID, m.ID)
		msg.Header.Set(headerMessageID, m.ID)
		if _, err := js.PublishMsg(ctx, msg); err != nil {
			t.Fatal(err)
		}
	}
	stream := must(js.Stream(ctx, testStream))
	if err := stream.DeleteMsg(ctx, 3); err != nil { // or the whole stream is refused
		t.Fatal(err)
	}
	ids, err := sinktest.Open(within(t), newSink(t, options), place.text())
	if err != nil {
		t.Fatal(err)
	}
	wantIDs(t, ids, idsOf(batch[:2]))
}

// TestI4DefaultStreamOfAnOlderVersion is used on where it is ours, with one line in the log.
func TestI4DefaultStreamOfAnOlderVersion(t *testing.T) {
	for _, test := range []struct {
		name string
		old  func(s *testServer, options Options) sink.Mark // what is there; its mark is the sink's
		want string                                         // the stream that is used
	}{
		{"none", func(*testServer, Options) sink.Mark { return "" }, "K8S_prod"},
		{"with the mark", func(s *testServer, o Options) sink.Mark { return write(s.t, openSink(s.t, o), newMaker().Batch(3)) }, "K8S"},
		{"with our records", func(s *testServer, o Options) sink.Mark {
			write(s.t, openSink(s.t, o), newMaker().Batch(3))
			return ""
		}, "K8S"},
		{"made by hand", func(s *testServer, o Options) sink.Mark {
			s.makeStream("K8S", "k8s.>")
			return ""
		}, "K8S"},
		{"of another cluster", func(s *testServer, o Options) sink.Mark {
			o.Subjects = []string{"k8s.other.>"}
			batch := theirs(3, "other")
			for i := range batch {
				batch[i].Destination = "k8s.other.x"
			}
			write(s.t, openSink(s.t, o), batch)
			return ""
		}, "K8S_prod"},
		{"with the mark, and gone", func(s *testServer, o Options) sink.Mark {
			mark := write(s.t, openSink(s.t, o), newMaker().Batch(3))
			s.deleteStream()
			return mark
		}, "K8S_prod"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServer(t)
			options := judged(s.options(), true)
			options.Subjects = []string{"k8s.test.>", "k8s.x"}
			mark := test.old(s, options)
			options.Stream, options.Formerly = "K8S_prod", "K8S"
			var notices []string
			options.Notice = func(text string) {
				if strings.HasPrefix(text, "go on in stream K8S,") {
					notices = append(notices, text)
				}
			}
			ours := newSink(t, options)
			for range 2 {
				_, err := sinktest.Open(within(t), ours, mark)
				var lost *sink.LostError
				if err != nil && !errors.As(err, &lost) {
					t.Fatal(err)
				}
				mark = write(t, ours, newMaker().Batch(1))
				if ours.name != test.want {
					t.Fatalf("it writes to %s, want %s", ours.name, test.want)
				}
			}
			if told := len(notices); (test.want == "K8S") != (told == 1) {
				t.Errorf("%d lines in the log: %q", told, notices)
			}
		})
	}
}

// TestI10DefaultStreamOfAnotherCluster that takes our subjects, too: nothing is written to it.
func TestI10DefaultStreamOfAnotherCluster(t *testing.T) {
	s := startServer(t)
	batch := theirs(3, "other")
	write(t, openSink(t, s.options()), batch)
	options := judged(s.options(), true)
	options.Stream, options.Formerly = "K8S_prod", "K8S"
	want := `create stream K8S_prod: stream K8S takes subjects of ["k8s.>"] already: name other subjects, or write to that stream`
	wantError(t, openError(t, options, ""), want)
	wantIDs(t, s.ids(), idsOf(batch))
}

// TestI10ABucketThatAnotherClusterFillsMeanwhile: both opened it when it was empty, and what the other one wrote first
// it has replaced already when ours comes.
func TestI10ABucketThatAnotherClusterFillsMeanwhile(t *testing.T) {
	eachMode(t, []string{PublishFast, PublishOrdered}, func(t *testing.T, publish string) {
		s := startServer(t)
		options := bucketOptions(s.URL())
		options.Publish = publish
		other, ours := openSink(t, options), openSink(t, judged(options, false))
		mark := write(t, ours, nil)
		batch := theirs(12, "prod")
		for i := range batch {
			batch[i].Destination = fmt.Sprintf("$KV.%s.pods.%d", bucket, i%3) // so nine of them are replaced
		}
		write(t, other, batch)
		mine := newMaker().Batch(2)
		for i := range mine {
			mine[i].Destination = fmt.Sprintf("$KV.%s.pods.%d", bucket, i)
		}
		if _, err := ours.Write(within(t), mine); err == nil {
			t.Fatal("ours is written over theirs")
		}
		_, err := sinktest.Open(within(t), ours, mark)
		var permanent *sink.PermanentError
		if !errors.As(err, &permanent) || !strings.Contains(err.Error(), "the key cluster") {
			t.Errorf("open after that: %v", err)
		}
	})
}
