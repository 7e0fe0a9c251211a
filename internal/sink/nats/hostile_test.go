package nats

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
	"github.com/kubecdc/kubecdc/internal/sink/nats/service"
)

// ofService are the permissions of docs/nats.md for a service with a login of its own.
func ofService() *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"_INBOX.>"}, Deny: []string{"_INBOX.kubecdc.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.kubecdc.>", "kubecdc.prod.*", "$SRV.>"}},
	}
}

// hostileServer has users with just the permissions of docs/nats.md, and somebody who may ask and nothing else.
func hostileServer(t *testing.T) *testServer {
	of := ofStream().and("$JS.API.STREAM.CREATE.K8S")
	return startServer(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "admin", Password: "p"},
			{Username: "kubecdc", Password: "p", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{Allow: of.publish}, Subscribe: &server.SubjectPermission{Allow: of.subscribe},
			}},
			{Username: "service", Password: "p", Permissions: ofService()},
			{Username: "asker", Password: "p", Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"kubecdc.prod.*", "$SRV.>"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		}
	})
}

// connectAs is a connection of the user.
func (s *testServer) connectAs(user string) *natsgo.Conn {
	s.t.Helper()
	js, _ := s.admin(natsgo.UserInfo(user, "p"), natsgo.IgnoreAuthErrorAbort(), natsgo.SkipSubjectValidation(),
		natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}))
	return js.Conn()
}

// answering is how questions are answered, by whom; it ends with the test.
type answering func(t *testing.T, s *testServer)

// asTheExporter answers as the exporter does.
func asTheExporter(user string) answering {
	return func(t *testing.T, s *testServer) {
		options := s.options()
		options.User, options.Password = user, "p"
		<-serve(t, options, func(error) {})
	}
}

// serve answers questions until the test ends. told is told of what goes wrong.
func serve(t *testing.T, options Options, told func(error)) (serving <-chan struct{}) {
	t.Helper()
	began := make(chan struct{}, 100)
	served := service.New(service.Options{
		Connection: options.Connection("asked"), Subject: "kubecdc.prod", Inboxes: []string{"_INBOX."},
		Endpoints: map[string]func(context.Context, []byte) ([]byte, error){"list": aList, "stop": aRefusal},
		Code:      func(error) int { return 400 }, Serving: func() { began <- struct{}{} },
		Failed: told, Refused: func(_ string, err error) { told(err) },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { served.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return began
}

// naively answers to any subject, as the micro library does.
func naively(user string) answering {
	return func(t *testing.T, s *testServer) {
		nc := s.connectAs(user)
		served, err := micro.AddService(nc, micro.Config{Name: "kubecdc", Version: "0.0.0"})
		noError(t, err)
		t.Cleanup(func() { _ = served.Stop() })
		for name, answer := range map[string]func(context.Context, []byte) ([]byte, error){"list": aList, "stop": aRefusal} {
			err := served.AddGroup("kubecdc.prod").AddEndpoint(name, micro.HandlerFunc(func(r micro.Request) {
				text, _ := answer(t.Context(), r.Data())
				_ = r.Respond(text)
			}))
			noError(t, err)
		}
		noError(t, nc.Flush())
	}
}

func aList(context.Context, []byte) ([]byte, error) { return []byte(`{"owed":null}`), nil }

func aRefusal(context.Context, []byte) ([]byte, error) {
	return nil, errors.New("no")
}

// attacks are subjects to which a hostile asker has its answers sent. ours is the exporter's own inbox.
func attacks(ours string) []string {
	return []string{
		"k8s.test.core.pods.shop.web", // a record, or the end of the exporter: "another writer"
		"k8s.forged",
		"$JS.API.STREAM.PURGE.K8S", "$JS.API.STREAM.DELETE.K8S", "$JS.API.STREAM.MSG.DELETE.K8S",
		"$JS.API.STREAM.UPDATE.K8S", "$JS.API.CONSUMER.DELETE.K8S.c", "$JS.hub.API.STREAM.PURGE.K8S",
		"$KV.kubecdc-state-prod.part", // fences the log of the state
		"$KV.NOW.core.pods.shop.web", "$O.files.C.x", "$SYS.REQ.SERVER.PING", "$SRV.PING", "$JSC.R.x",
		"$JS.ACK.K8S.c.1.1.1.1.0",   // only a server may name it
		"_R_.abc", "_GR_.c.s.k8s.x", // neither
		"kubecdc.prod.stop",          // the answer becomes a question
		"kubecdc.prod.list", "other", //
		"_INBOX", "_INBOX.", "_INBOXES.x", "_inbox.x", // no inbox
		"_INBOX.*", "_INBOX.>", "_INBOX.x.*", "_INBOX.*.x", "_INBOX.x.>", // the inboxes of all
		ours + "1", ours + "7", "_INBOX.kubecdc.x", // what the server answers to the exporter
		"k8s." + strings.Repeat("x", 3000),
	}
}

// TestI10AskersForgeNothing: whoever may only ask has no answer sent where it would be a record, a request to
// JetStream, a state or a server's word to the exporter. The service sees to that, whatever it may do itself, and so do
// the permissions of docs/nats.md, whatever the service does; without both, the attacks come through.
func TestI10AskersForgeNothing(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers answering
		safe    bool
		inboxes bool // others' may get them
	}{
		{"the service", asTheExporter("admin"), true, false},
		{"the permissions", naively("service"), true, true},
		{"both", asTheExporter("service"), true, false},
		{"neither", naively("admin"), false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := hostileServer(t)
			admin := s.connectAs("admin")
			written := openSink(t, userOf(s))
			batch := newMaker().Batch(6)
			write(t, written, batch[:3])
			test.answers(t, s)
			came := slices.DeleteFunc(s.attack(t, admin, written.conn.Inbox), func(subject string) bool {
				return test.inboxes && strings.HasPrefix(subject, "_INBOX.") && !strings.HasPrefix(subject, conn.Inboxes)
			})
			if test.safe && len(came) > 0 || !test.safe && len(came) < 20 {
				t.Errorf("answers came to %d subjects: %.1000q", len(came), came)
			}
			if !test.safe {
				return
			}
			write(t, written, batch[3:])
			wantIDs(t, s.ids(natsgo.UserInfo("admin", "p")), idsOf(batch))
		})
	}
}

// attack asks for answers to all the subjects, and returns those to which some came.
func (s *testServer) attack(t *testing.T, admin *natsgo.Conn, ours string) (came []string) {
	t.Helper()
	all, err := admin.SubscribeSync(">")
	if err == nil {
		err = all.SetPendingLimits(-1, -1)
	}
	if err == nil {
		err = admin.Flush()
	}
	noError(t, err)
	asked := map[string]bool{}
	questions := []string{"kubecdc.prod.list", "kubecdc.prod.stop", "$SRV.PING", "$SRV.INFO.kubecdc", "$SRV.STATS.kubecdc"}
	asker := s.connectAs("asker")
	for _, subject := range attacks(ours) {
		asked[subject] = true
		large := make([]byte, len(subject)%2*70<<10) // is refused elsewhere
		for _, question := range questions {
			noError(t, asker.PublishRequest(question, subject, large))
			if _, err := asker.Request(question, nil, limit); err != nil { // each is answered in order
				t.Fatalf("%s after %.50s: %v", question, subject, err)
			}
		}
	}
	noError(t, asker.Publish("kubecdc.prod.over", nil))
	for {
		m, err := all.NextMsg(limit)
		noError(t, err)
		switch {
		case m.Subject == "kubecdc.prod.over":
			return came
		case m.Reply == "" && asked[m.Subject] && !slices.Contains(came, m.Subject): // questions have one
			came = append(came, m.Subject)
		}
	}
}

// TestAnAnswerThatIsNotPermittedEndsNothing: who wants it at an inbox that is denied does not keep others from asking.
func TestAnAnswerThatIsNotPermittedEndsNothing(t *testing.T) {
	s := startServer(t, func(o *server.Options) {
		permissions := ofService()
		permissions.Publish.Deny = append(permissions.Publish.Deny, "_INBOX.denied.>")
		o.Users = []*server.User{
			{Username: "service", Password: "p", Permissions: permissions}, {Username: "admin", Password: "p"},
		}
	})
	options := s.options()
	options.User, options.Password = "service", "p"
	told := make(chan error, 100)
	serving := serve(t, options, func(err error) { told <- err })
	<-serving
	admin := s.connectAs("admin")
	noError(t, admin.PublishRequest("kubecdc.prod.list", "_INBOX.denied.x", nil))
	wantError(t, <-told, `publish to "_INBOX.denied.x": not permitted by the server: allow it to the sink's user`)
	if _, err := admin.Request("kubecdc.prod.list", nil, limit); err != nil || len(serving) > 0 {
		t.Errorf("got %v, and it has served %d times more", err, len(serving))
	}
}

// TestAskersOfAnotherAccount are answered: the server takes their answers for them, under a subject that no client may
// name.
func TestAskersOfAnotherAccount(t *testing.T) {
	mine, theirs := server.NewAccount("EXPORTER"), server.NewAccount("TENANT")
	s := startServer(t, func(o *server.Options) {
		o.Accounts = []*server.Account{mine, theirs}
		o.Users = []*server.User{
			{Username: "service", Password: "p", Account: mine, Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"_R_.>"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.kubecdc.>", "kubecdc.prod.*", "$SRV.>"}},
			}},
			{Username: "asker", Password: "p", Account: theirs},
		}
		o.JetStream = false
	})
	account := func(of *server.Account) *server.Account {
		found, err := s.LookupAccount(of.Name)
		noError(t, err)
		return found
	}
	noError(t, account(mine).AddServiceExport("kubecdc.prod.*", nil))
	noError(t, account(theirs).AddServiceImport(account(mine), "kubecdc.prod.*", "kubecdc.prod.*"))
	asTheExporter("service")(t, s)
	answer, err := s.connectAs("asker").Request("kubecdc.prod.list", nil, limit)
	if err != nil || string(answer.Data) != `{"owed":null}` {
		t.Fatalf("got %v, %v", answer, err)
	}
}
