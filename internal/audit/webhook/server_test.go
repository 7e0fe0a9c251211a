package webhook

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/test/authority"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a server with certificates, and what it has refused.
type rig struct {
	t       *testing.T
	dir     string
	ca      *authority.Authority
	server  *Server
	address string

	refused chan string   // reasons
	read    chan struct{} // holds one token when an event was read

	mu     sync.Mutex
	events []string
	failed int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), refused: make(chan string, 1000), read: make(chan struct{}, 1)}
	r.ca = authority.New(t, r.dir, "ca")
	r.ca.Pair("server")
	r.ca.Pair("client")
	files := &Certificates{Cert: r.path("server.crt"), Key: r.path("server.key"), ClientCA: r.path("ca.crt"), Failed: func(error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failed++
	}}
	if err := files.Load(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.server, r.address = NewServer(listener, files), listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.server.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return r
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

// taking puts what comes into the line until the returned function is called.
func (r *rig) taking(line Line) (stop func() error) {
	r.t.Helper()
	stream := change.Stream{Resource: change.Resource{Version: "v1", Name: "configmaps"}}
	config := Config{
		Sinks: []Sink{{Name: "out"}}, Find: func(string, string, string) (audit.Object, bool) { return audit.Object{Stream: &stream}, true },
		Observer: Observer{
			Event:   r.event,
			Refused: r.refusal,
		},
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	wait := r.server.begin(ctx, config, line)
	return func() error { cancel(); return wait() }
}

// refusal is the observer's.
func (r *rig) refusal(reason string, _ error) {
	if !slices.Contains(Reasons(), reason) {
		r.t.Errorf("%q is no reason that is known", reason)
	}
	r.refused <- reason
}

// event is the observer's.
func (r *rig) event(outcome string) {
	if !slices.Contains(Outcomes(), outcome) {
		r.t.Errorf("%q is no outcome that is known", outcome)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, outcome)
	select {
	case r.read <- struct{}{}:
	default:
	}
}

// client sends with the certificates of the directory; "" shows none.
func (r *rig) client(name string) *http.Client {
	r.t.Helper()
	cert, key := r.path(name+".crt"), r.path(name+".key")
	if name == "" {
		cert, key = "", ""
	}
	transport := &http.Transport{TLSClientConfig: r.ca.Sender(cert, key)}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// send is the answer's code and header, 0 where there is none.
func (r *rig) send(client *http.Client, body io.Reader) (int, http.Header) {
	r.t.Helper()
	answer, err := client.Post("https://"+r.address, "application/json", body)
	if err != nil {
		return 0, nil
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		r.t.Error(err)
	}
	if answer.Close { // net/http's client takes the header away
		answer.Header.Set("Connection", "close")
	}
	return answer.StatusCode, answer.Header
}

// wasRefused waits until a refusal for the reason is told: the server may tell of a handshake after the client knows.
func (r *rig) wasRefused(reason string) bool {
	for patience := time.After(10 * time.Second); ; {
		select {
		case told := <-r.refused:
			if told == reason {
				return true
			}
		case <-patience:
			return false
		}
	}
}

// created is the event of a configmap that was created.
func created(name string) string {
	return fmt.Sprintf(`{"auditID":"x","stage":"ResponseComplete","verb":"create","user":{"username":"alice"},
		"objectRef":{"resource":"configmaps","namespace":"n","name":%[1]q},"responseStatus":{"code":201},
		"responseObject":{"metadata":{"name":%[1]q,"namespace":"n","uid":"u","resourceVersion":"9"}}}`, name)
}

func list(events ...string) io.Reader {
	return strings.NewReader(listHead + strings.Join(events, ",") + "]}")
}

// I9, I10: who shows no certificate, or one of another authority, cannot name a user.
func TestI9WhoeverIsNotKnownIsRefusedInTheHandshake(t *testing.T) {
	r, line := newRig(t), &pushed{}
	stop := r.taking(line)
	authority.New(t, r.dir, "other").Pair("stranger")
	for _, name := range []string{"", "stranger"} {
		if code, _ := r.send(r.client(name), list(created("a"))); code != 0 || !r.wasRefused(handshake) {
			t.Errorf("with certificate %q the answer is %d, and it is not told", name, code)
		}
	}
	if code, _ := r.send(r.client("client"), list(created("a"))); code != http.StatusOK || len(line.ids) != 1 {
		t.Errorf("a known sender is answered %d, and %q is in line", code, line.ids)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestCertificatesAreRenewedOnDisk(t *testing.T) {
	r := newRig(t)
	stop := r.taking(&pushed{})
	defer stop()
	if err := os.WriteFile(r.path("server.crt"), []byte("half of a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _ := r.send(r.client("client"), list()); code != http.StatusOK || r.failed != 1 {
		t.Errorf("with a broken file the answer is %d, and %d failures are told", code, r.failed)
	}
	r.ca = authority.New(t, r.dir, "ca")
	old := r.client("client")
	r.ca.Pair("server")
	if code, _ := r.send(old, list()); code != 0 {
		t.Errorf("a sender of the old authority is answered %d", code)
	}
	r.ca.Pair("client")
	if code, _ := r.send(r.client("client"), list()); code != http.StatusOK {
		t.Errorf("with new certificates the answer is %d", code)
	}
}

// A standby, and a process between two runs, has the API server send the batch again, perhaps to another one.
func TestI1NothingIsTakenWhileNobodyDelivers(t *testing.T) {
	r, line := newRig(t), &pushed{}
	client := r.client("client")
	nobody := func(when string) {
		t.Helper()
		code, header := r.send(client, list(created("a")))
		if code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || header.Get("Connection") != "close" || len(line.ids) != 0 {
			t.Errorf("%s the answer is %d %v, and %q is in line", when, code, header, line.ids)
		}
	}
	nobody("before the first run")
	stop := r.taking(&pushed{})
	if err := stop(); err != nil {
		t.Error(err)
	}
	nobody("behind a run")
	defer r.taking(line)()
	if code, _ := r.send(client, list(created("a"))); code != http.StatusOK || len(line.ids) != 1 {
		t.Errorf("in the next run the answer is %d, and %q is in line", code, line.ids)
	}
}

// stuck takes records, and never has them.
type stuck struct {
	pushed
	waiting chan struct{}
}

func (s *stuck) Drain(ctx context.Context) error {
	close(s.waiting)
	<-ctx.Done()
	return context.Cause(ctx)
}

// I1, I7: what is not durable when the run ends is not answered with 200, and the end waits for nobody.
func TestI1I7TheEndOfARunAnswersNothingThatIsNotDurable(t *testing.T) {
	r, line := newRig(t), &stuck{waiting: make(chan struct{})}
	stop := r.taking(line)
	code := make(chan int, 1)
	go func() {
		got, _ := r.send(r.client("client"), list(created("a")))
		code <- got
	}()
	<-line.waiting
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := <-code; got != http.StatusServiceUnavailable {
		t.Errorf("the answer is %d", got)
	}
}

// I7: nor does a sender that says nothing more hold the end up.
func TestI7ASlowSenderDoesNotHoldTheEndUp(t *testing.T) {
	r := newRig(t)
	stop := r.taking(&pushed{})
	body, more := io.Pipe()
	code := make(chan int, 1)
	go func() {
		got, _ := r.send(r.client("client"), body)
		code <- got
	}()
	if _, err := io.WriteString(more, listHead+created("a")+","); err != nil {
		t.Fatal(err)
	}
	<-r.read // of which the server has a part, then
	began := time.Now()
	if err := stop(); err != nil || time.Since(began) > answerTime/2 {
		t.Errorf("the end took %s: %v", time.Since(began), err)
	}
	more.Close()
	<-code
}

// A tenant writes what is in an event. What cannot be read keeps nobody else's event out.
func TestI4AnEventThatCannotBeReadTakesNoOtherWithIt(t *testing.T) {
	r, line := newRig(t), &pushed{}
	defer r.taking(line)()
	deep := strings.Replace(created("b"), `"verb"`, `"requestObject":`+strings.Repeat(`{"a":`, 10000)+`1`+strings.Repeat(`}`, 10000)+`,"verb"`, 1)
	code, _ := r.send(r.client("client"), list(created("a"), deep, `{"auditID":7}`, created("c")))
	if code != http.StatusOK || len(line.ids) != 2 {
		t.Errorf("the answer is %d, and %q is in line", code, line.ids)
	}
	if got := strings.Join(r.events, " "); got != "proven unknown unknown proven" {
		t.Errorf("the events are %s", got)
	}
}

func TestWhatIsNoBatchIsRefused(t *testing.T) {
	r := newRig(t)
	defer r.taking(&pushed{})()
	if code, _ := r.send(r.client("client"), strings.NewReader(`{"kind":"PodList"}`)); code != http.StatusBadRequest || !r.wasRefused(malformed) {
		t.Errorf("the answer is %d, or it is not told why", code)
	}
	answer, err := r.client("client").Get("https://" + r.address)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET is answered %s", answer.Status)
	}
}

// I6: a batch of any length is read event by event, and so many at once.
func TestI6SoManyBatchesAreReadAtOnce(t *testing.T) {
	r := newRig(t)
	defer r.taking(&pushed{})()
	if !r.server.places.TryAcquire(atOnce) {
		t.Fatal("a request is under way")
	}
	if code, header := r.send(r.client("client"), list()); code != http.StatusTooManyRequests || header.Get("Retry-After") == "" || !r.wasRefused(busy) {
		t.Errorf("the answer is %d, or it is not told why", code)
	}
	r.server.places.Release(atOnce)
	var batch bytes.Buffer
	batch.WriteString(listHead)
	for i := range 3 * group {
		if i > 0 {
			batch.WriteByte(',')
		}
		batch.WriteString(created(fmt.Sprint("object-", i)))
	}
	batch.WriteString("]}")
	if code, _ := r.send(r.client("client"), &batch); code != http.StatusOK {
		t.Errorf("the answer is %d", code)
	}
}
