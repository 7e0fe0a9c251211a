package nats

import (
	"errors"
	"fmt"
	"strings"
	"testing"

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

// TestI10AnotherClustersStreamIsRefused at the start and by check, which name the key to set.
func TestI10AnotherClustersStreamIsRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Options)
		theirs string // name of the other cluster
		want   string
	}{
		{"the same name", nil, "prod", "give each cluster a name of its own with the key cluster"},
		{"another name", nil, "test", "give each cluster a stream of its own with the key stream"},
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
				if !errors.As(err, &permanent) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), otherUID[:8]) {
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
	mine := judged(s.options(), true)
	first := openSink(t, mine)
	before := write(t, first, nil)
	batch := newMaker().Batch(4)
	write(t, first, batch)
	s.publish("k8s.another.subject", batch[0].ID)
	narrow := mine
	narrow.Subjects = []string{"k8s.test.>", "k8s.x"}
	wantIDs(t, openAt(t, newSink(t, narrow), before), idsOf(batch))
	s.publish("k8s.x", theirs(1, "prod")[0].ID)
	_, err := sinktest.Open(within(t), newSink(t, mine), before)
	var foreign *sink.ForeignError
	if !errors.As(err, &foreign) || foreign.UID != otherUID[:8] || !strings.Contains(err.Error(), "key cluster") {
		t.Fatalf("got %v", err)
	}
}

// TestI10ABucketThatAnotherClusterFillsMeanwhile: both opened it when it was empty, and what the other one wrote first
// it has replaced already when ours comes.
func TestI10ABucketThatAnotherClusterFillsMeanwhile(t *testing.T) {
	s := startServer(t)
	options := bucketOptions(s.URL())
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
}
