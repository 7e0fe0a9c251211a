package badinput

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/kubecdc/kubecdc/test/natsserver"
)

// broker is a real NATS server.
type broker struct {
	t *testing.T
	*natsserver.Server
}

// startBroker starts one that dies with the test.
func startBroker(t *testing.T, changes ...func(*natsserver.Options)) *broker {
	t.Helper()
	return &broker{t, natsserver.Start(t, changes...)}
}

// as is the URL with a login.
func (b *broker) as(login string) string { return strings.Replace(b.URL(), "://", "://"+login+"@", 1) }

func (b *broker) jetstream(options ...nats.Option) jetstream.JetStream {
	b.t.Helper()
	return natsserver.Connect(b.t, b.URL(), options...)
}

func (b *broker) streams() []string {
	b.t.Helper()
	names := b.jetstream().StreamNames(b.t.Context())
	var all []string
	for name := range names.Name() {
		all = append(all, name)
	}
	if names.Err() != nil {
		b.t.Fatal(names.Err())
	}
	return all
}

func (b *broker) create(config jetstream.StreamConfig) {
	b.t.Helper()
	if _, err := b.jetstream().CreateStream(b.t.Context(), config); err != nil {
		b.t.Fatal(err)
	}
}

// refuses checks that run and check say the same of the sink.
func (d *desk) refuses(t *testing.T, sink, want string) {
	t.Helper()
	d.exporter(usual("--resources", "configmaps", "--sink", sink)...).fails(t, 1, "open sink nats: "+want)
	d.checks(t, sink, 1, "problem  sink nats: "+want)
}

func TestWrongNATSLogin(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t, func(o *natsserver.Options) { o.Username, o.Password = "me", "right" })
	want := "connect to " + b.URL() + ": authorization violation: check user, password, token, nkey or credentials file of the sink"
	for _, sink := range []string{b.as("me:" + password), b.as(password), b.URL()} {
		d.refuses(t, sink, want)
	}
}

func TestNATSWithoutJetStream(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t, func(o *natsserver.Options) { o.JetStream = false })
	d.refuses(t, b.URL(), "look up stream K8S_dev: JetStream is not enabled on the server: start it with -js or with a jetstream {} block in its configuration")
}

func TestStreamWhoseSubjectsAreTaken(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t)
	b.create(jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"k8s.dev.core.configmaps.>"}})
	d.refuses(t, b.URL(), `create stream K8S_dev: stream AUDIT takes subjects of ["k8s.dev.*.*.*.*"] already: name other subjects, or, where nobody else writes to it, that stream with the key stream`)
}

func TestStreamThatDoesNotTakeTheSubjects(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t)
	b.create(jetstream.StreamConfig{Name: "K8S", Subjects: []string{"k8s.prod.>"}})
	d.refuses(t, b.URL()+"?stream=K8S", `open stream K8S: it takes ["k8s.prod.>"], which does not cover "k8s.dev.*.*.*.*": `+
		"give each cluster a stream of its own with the key stream, or, where nobody else writes to it, add this to the stream's subjects")
}

// TestNATSUnreachableAtTheStart keeps trying, says so once, and leaves when it is told to: nothing waits for the sink.
func TestNATSUnreachableAtTheStart(t *testing.T) {
	d := newDesk(t)
	r := d.start(usual("--resources", "configmaps", "--sink", "nats://me:"+password+"@127.0.0.1:1", "--log-level", "info")...)
	_, said, _ := strings.Cut(r.logs("sink retries"), " ")
	said, _, _ = strings.Cut(said, " waiting=")
	if want := fmt.Sprintf("level=WARN msg=\"sink retries\" sink=nats reason=disconnected error=%q", unreachable); said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	eventually(t, "several attempts", func() bool { return retries(t, r.get("/metrics")) > 3 })
	if s := r.status().Sinks["nats"]; s.State != "failing" || s.LastError != unreachable {
		t.Errorf("/statusz says %+v", s)
	}
	if n := r.times("sink retries"); n != 1 {
		t.Errorf("said %d times:\n%s", n, r.out)
	}
	if code, undelivered := r.stop(), r.times("left undelivered"); code != 0 || undelivered > 0 {
		t.Errorf("exit code %d:\n%s", code, r.out)
	}
}

const unreachable = "connect to nats://127.0.0.1:1: nobody answers there: check the URL, and that the server is up"

var retriesLine = regexp.MustCompile(`(?m)^kubecdc_sink_retries_total\{.*\} (\d+)$`)

func retries(t *testing.T, metrics string) int {
	t.Helper()
	found := retriesLine.FindStringSubmatch(metrics)
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPasswordIsOnNoPage: a sink that works with a password shows it nowhere.
func TestPasswordIsOnNoPage(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t, func(o *natsserver.Options) { o.Username, o.Password = "me", password })
	r := d.started("--sink", b.as("me:"+password), "--log-level", "debug")
	for _, path := range []string{"/metrics", "/statusz", "/healthz", "/readyz"} {
		r.get(path) // looks for secrets
	}
	r.stopsWell()
	show := d.exporter("checkpoint", "show", "--state-dir", "state", "-o", "json")
	if show.Code != 0 || !slices.Contains(strings.Fields(show.Stdout), `"configmaps":`) {
		t.Errorf("exit code %d:\n%s%s", show.Code, show.Stdout, show.Stderr)
	}
}
