package badinput

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubecdc/kubecdc/test/natsserver"
)

func TestStreamThatCanBeNoLog(t *testing.T) {
	d := newDesk(t)
	for _, test := range []struct {
		name, want string
		change     func(*jetstream.StreamConfig)
	}{
		{"mirror", "it mirrors stream ORIGIN: name the origin, or another stream",
			func(c *jetstream.StreamConfig) {
				c.Subjects, c.Mirror = nil, &jetstream.StreamSource{Name: "ORIGIN"}
			}},
		{"work queue", "it forgets what a consumer took (work-queue retention), so that nobody can find there what a crash left undone: " +
			"name a stream with limits retention, and let the work queue take it in as a source",
			func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := startBroker(t)
			b.create(jetstream.StreamConfig{Name: "ORIGIN", Subjects: []string{"origin"}})
			config := jetstream.StreamConfig{Name: "K8S", Subjects: []string{"k8s.>"}}
			test.change(&config)
			b.create(config)
			d.refuses(t, b.URL()+"?stream=K8S", "open stream K8S: "+test.want)
		})
	}
}

func TestStreamThatIsSealed(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t)
	config := jetstream.StreamConfig{Name: "K8S", Subjects: []string{"k8s.>"}}
	b.create(config)
	config.Sealed = true
	if _, err := b.jetstream().UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	d.refuses(t, b.URL()+"?stream=K8S", "open stream K8S: it is sealed: name another stream")
}

// tooLarge has a size in it that depends on the length of names.
var tooLarge = regexp.MustCompile(`publish \d+ bytes`)

// TestI4StreamWithSmallerMessagesThanObjects: what does not fit is announced in its place, on the wire and in the log.
func TestI4StreamWithSmallerMessagesThanObjects(t *testing.T) {
	d := newDesk(t)
	b := startBroker(t)
	b.create(jetstream.StreamConfig{Name: "K8S_dev", Subjects: []string{"k8s.>"}, MaxMsgSize: 8 << 10})
	namespace := newNamespace(t)
	d.write("config.yaml", `{resources: [{resource: configmaps, namespaces: [`+namespace+`]}], sinks: [{name: nats, nats: {url: "`+b.URL()+`"}}]}`)
	r := d.runs()
	createConfigMap(t, namespace, "large")
	patch := fmt.Appendf(nil, `{"data":{"text":%q}}`, strings.Repeat("x", 8<<10))
	large, err := admin(t).CoreV1().ConfigMaps(namespace).Patch(t.Context(), "large", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, said, _ := strings.Cut(r.logs("object="+namespace+"/large"), " ")
	said = tooLarge.ReplaceAllString(said, "publish N bytes")
	want := fmt.Sprintf(`level=ERROR msg="record rejected; a gap record stands in its place" sink=nats resource=%[1]s/configmaps `+
		`object=%[1]s/large uid=%[2]s resourceVersion=%[3]s reason=too_large error="publish N bytes: stream K8S_dev takes 8192: raise its max_msg_size" records=1`, namespace, large.UID, large.ResourceVersion)
	if said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	createConfigMap(t, namespace, "behind")
	eventually(t, "the next change in the stream", func() bool { return b.has(nil, "/namespaces/"+namespace+"/configmaps/behind") })
	if !b.has(nil, `"reason":"policy"`) {
		t.Error("the stream has no gap record")
	}
	r.stopsWell()
}

// place is that of the message for which there was no room.
var place = regexp.MustCompile(`message \d+`)

// TestI4AccountOutOfStorage: nothing is dropped, it is said once, and goes on when there is room.
func TestI4AccountOutOfStorage(t *testing.T) {
	d := newDesk(t)
	account := server.NewAccount("A")
	b := startBroker(t, func(o *natsserver.Options) {
		o.Accounts = []*server.Account{account}
		o.Users = []*server.User{{Username: "me", Password: password, Account: account}}
	})
	limits := func(bytes int64) map[string]server.JetStreamAccountLimits {
		return map[string]server.JetStreamAccountLimits{"": {MaxStore: bytes, MaxMemory: -1, MaxStreams: -1, MaxConsumers: -1, MemoryMaxStreamBytes: -1, StoreMaxStreamBytes: -1}}
	}
	live, err := b.LookupAccount("A")
	if err == nil {
		err = live.EnableJetStream(limits(1<<10), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := d.start(usual("--resources", "configmaps", "--sink", b.as("me:"+password), "--log-level", "info")...) // its snapshot may wait
	namespace := newNamespace(t)
	createConfigMap(t, namespace, "waits")
	_, said, _ := strings.Cut(r.logs("sink retries"), " ")
	said, _, _ = strings.Cut(said, " waiting=")
	said = place.ReplaceAllString(said, "message N")
	if want := `level=WARN msg="sink retries" sink=nats reason=limits error="publish message N of the batch: resource limits exceeded for account"`; said != want {
		t.Errorf("got  %s\nwant %s", said, want)
	}
	if s := r.status().Sinks["nats"]; s.State != "failing" || !strings.Contains(s.LastError, "resource limits exceeded for account") {
		t.Errorf("/statusz says %+v", s)
	}
	if err := live.UpdateJetStreamLimits(limits(64 << 20)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change in the stream", func() bool { return b.has(nats.UserInfo("me", password), "/namespaces/"+namespace+"/configmaps/waits") })
	if code, n := r.stop(), r.times("sink retries"); code != 0 || n != 1 {
		t.Errorf("exit code %d, said %d times:\n%s", code, n, r.out)
	}
}

// has says whether a message of the stream has the text.
func (b *broker) has(login nats.Option, text string) bool {
	b.t.Helper()
	js := b.jetstream(login)
	defer js.Conn().Close()
	stream, err := js.Stream(b.t.Context(), "K8S_dev")
	if err != nil {
		b.t.Fatal(err)
	}
	state := stream.CachedInfo().State
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
		message, err := stream.GetMsg(b.t.Context(), seq)
		if err != nil {
			b.t.Fatal(err)
		}
		if strings.Contains(string(message.Data), text) {
			return true
		}
	}
	return false
}
