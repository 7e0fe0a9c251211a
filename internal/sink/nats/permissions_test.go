package nats

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

// permitted is a user's permissions of docs/nats.md, for stream K8S.
type permitted struct{ publish, subscribe []string }

// ofStream are those of a sink with a stream that is there.
func ofStream() permitted {
	return permitted{
		publish:   []string{"k8s.>", "$JS.API.STREAM.INFO.K8S", "$JS.API.STREAM.MSG.GET.K8S"},
		subscribe: []string{"_INBOX.kubecdc.>"},
	}
}

// and adds subjects to publish to.
func (p permitted) and(publish ...string) permitted {
	p.publish = slices.Concat(p.publish, publish)
	return p
}

// without takes one away, wherever it is.
func (p permitted) without(subject string) permitted {
	not := func(s string) bool { return s == subject }
	return permitted{slices.DeleteFunc(slices.Clone(p.publish), not), slices.DeleteFunc(slices.Clone(p.subscribe), not)}
}

// server is one with a user that may do just this, and another that may do everything.
func (p permitted) server(t *testing.T) *testServer {
	return startServer(t, func(o *server.Options) {
		allow := func(subjects []string) *server.SubjectPermission {
			if len(subjects) == 0 { // which the server takes for all
				return &server.SubjectPermission{Deny: []string{">"}}
			}
			return &server.SubjectPermission{Allow: subjects}
		}
		o.Users = []*server.User{
			{Username: "kubecdc", Password: "p", Permissions: &server.Permissions{Publish: allow(p.publish), Subscribe: allow(p.subscribe)}},
			{Username: "admin", Password: "p"},
		}
	})
}

// userOf are options for a sink of the user.
func userOf(s *testServer) Options {
	options := s.options()
	options.User, options.Password = "kubecdc", "p"
	return options
}

// bucketed makes them options of a bucket.
func bucketed(o Options, bucket string) Options {
	o.Stream, o.Subjects, o.KV = "", nil, bucket
	return o
}

// use opens a sink, writes, opens it again at its mark with something after it, and writes.
func use(t *testing.T, options Options, destination func(int) string) error {
	maker := &sinktest.Maker{Destination: destination}
	s := newSink(t, options)
	if _, err := sinktest.Open(within(t), s, ""); err != nil {
		return err
	}
	mark, err := s.Write(within(t), maker.Batch(4))
	if err != nil {
		return err
	}
	if _, err := s.Write(within(t), maker.Batch(40)); err != nil {
		return err
	}
	again := newSink(t, options)
	if tail, err := sinktest.Open(within(t), again, mark); err != nil || len(tail) != 40 {
		return cmp.Or(err, fmt.Errorf("%d are after the mark", len(tail)))
	}
	_, err = again.Write(within(t), maker.Batch(4))
	return err
}

// read reads the stream as verify, tail and a restored state do.
func read(t *testing.T, options Options, want int) error {
	r := must(NewReader(options, sink.Start{}))
	defer r.Close()
	n := 0
	err := r.Read(within(t), func(*sink.Stored) error { n++; return nil })
	if err == nil && n != want {
		err = fmt.Errorf("%d were read, want %d", n, want)
	}
	return err
}

// ask serves one question.
func ask(t *testing.T, s *testServer, options Options) error {
	failed := make(chan error, 1)
	serving := serve(t, options, func(err error) {
		select {
		case failed <- err:
		default:
		}
	})
	select {
	case <-serving:
	case err := <-failed:
		return err
	}
	js, _ := s.admin(natsgo.UserInfo("admin", "p"))
	inbox := js.Conn().NewInbox()
	answers, err := js.Conn().SubscribeSync(inbox)
	if err == nil {
		err = js.Conn().PublishRequest("kubecdc.prod.list", inbox, nil)
	}
	noError(t, err)
	answered := make(chan error, 1)
	go func() {
		_, err := answers.NextMsgWithContext(t.Context())
		answered <- err
	}()
	select {
	case err := <-answered:
		return err
	case err := <-failed:
		return err
	}
}

// consuming are what a reader of the stream publishes to, beside STREAM.INFO.
func consuming(stream string) []string {
	return []string{"$JS.API.CONSUMER.CREATE." + stream + ".>", "$JS.API.CONSUMER.MSG.NEXT." + stream + ".>"}
}

// ofBucket are those of a sink with a bucket that it makes.
func ofBucket(name string) permitted {
	return permitted{
		publish: []string{
			"$KV." + name + ".>", "$JS.API.STREAM.INFO.KV_" + name, "$JS.API.STREAM.CREATE.KV_" + name, "$JS.API.STREAM.MSG.GET.KV_" + name,
		},
		subscribe: []string{"_INBOX.kubecdc.>"},
	}
}

// TestPermissions: what docs/nats.md says is permission enough, and without any of it an error names what is missing.
func TestPermissions(t *testing.T) {
	usesBucket := func(t *testing.T, o Options, name string) error {
		return use(t, bucketed(o, name), func(number int) string { return fmt.Sprintf("$KV.%s.core.pods.shop.p%d", name, number) })
	}
	for _, test := range []struct {
		name    string
		permits permitted
		made    bool     // the stream is there
		spare   []string // what it does without
		try     func(t *testing.T, s *testServer, o Options) error
	}{
		{"stream that is there", ofStream(), true, nil, func(t *testing.T, _ *testServer, o Options) error { return use(t, o, destination) }},
		{"stream that is made", ofStream().and("$JS.API.STREAM.CREATE.K8S"), false, nil,
			func(t *testing.T, _ *testServer, o Options) error {
				return use(t, o, destination)
			}},
		{"bucket", ofBucket("NOW"), false, nil, func(t *testing.T, _ *testServer, o Options) error { return usesBucket(t, o, "NOW") }},
		{"check", ofStream().and("$JS.API.STREAM.NAMES"), false, []string{"k8s.>", "$JS.API.STREAM.MSG.GET.K8S"},
			func(t *testing.T, _ *testServer, o Options) error {
				_, err := newSink(t, o).Check(within(t))
				return err
			}},
		{"reader", ofStream().and(consuming("K8S")...), true, []string{"k8s.>", "$JS.API.STREAM.MSG.GET.K8S"},
			func(t *testing.T, s *testServer, o Options) error {
				s.publishAs("k8s.x")
				return read(t, o, 1)
			}},
		{"log of the state", ofBucket("state").and(consuming("KV_state")...), false, nil,
			func(t *testing.T, _ *testServer, o Options) error {
				if err := usesBucket(t, o, "state"); err != nil {
					return err
				}
				return read(t, bucketed(o, "state"), 48)
			}},
		{"questions", permitted{ofService().Publish.Allow, ofService().Subscribe.Allow}, false, nil, ask},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, missing := range append([]string{""}, slices.Concat(test.permits.publish, test.permits.subscribe)...) {
				s := test.permits.without(missing).server(t)
				if test.made {
					s.create(jetstream.StreamConfig{Name: testStream, Subjects: []string{"k8s.>"}})
				}
				err := test.try(t, s, userOf(s))
				enough := missing == "" || slices.Contains(test.spare, missing)
				if enough != (err == nil) || !enough && !names(err, missing) {
					t.Errorf("without %q: %v", missing, err)
				}
			}
		})
	}
}

// names says whether the error names the permission, or a subject that it covers.
func names(err error, permission string) bool {
	return strings.Contains(err.Error(), strings.TrimRight(permission, "*>")) &&
		strings.Contains(err.Error(), "not permitted by the server: allow it to the sink's user")
}

// publishAs publishes as one who may.
func (s *testServer) publishAs(subject string) {
	s.t.Helper()
	js, ctx := s.admin(natsgo.UserInfo("admin", "p"))
	if _, err := js.Publish(ctx, subject, nil); err != nil {
		s.t.Fatal(err)
	}
}
