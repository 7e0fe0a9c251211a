package control

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

const (
	// maxRequest is more than any list of resources needs, in bytes.
	maxRequest = 1 << 20
	// bodyTime is how long a request's body may take.
	bodyTime = 10 * time.Second
	// readerTime is how long a reader of the inventory may take for what was written since the last look. One that
	// stands still would keep old files of the state alive.
	readerTime = 30 * time.Second
	// flushEvery is how many objects are written between two looks.
	flushEvery = 512
)

// Handler serves the paths of the package, and nothing else, to who shows the token.
func Handler(f Functions, token Token) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /snapshot", asked(http.StatusAccepted, `{"resources":["pods"],"sink":"out"}, both optional`, f.Snapshot))
	mux.Handle("GET /snapshot", shown(f.Owed))
	mux.Handle("POST /snapshot/steer", asked(http.StatusOK, `{"do":"pause","ids":["7mare7x"]}, where do is stop, pause or resume`,
		func(ctx context.Context, asked SteerRequest) (SteerRequest, error) { return asked, f.Steer(ctx, asked) }))
	mux.HandleFunc("GET /inventory", f.serveInventory)
	mux.Handle("GET /checkpoint", shown(f.Checkpoint))
	mux.Handle("POST /deadletter/replay", asked(http.StatusOK, `{"sink":"bus","ids":["00112233445566778899"],"force":false}, all optional`, f.Replay))
	return guarded(mux, token)
}

// Elsewhere serves the same paths of an exporter that does not stream: each answer says where to ask.
func Elsewhere(where func() string, token Token) http.Handler {
	return guarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusServiceUnavailable, where())
	}), token)
}

// guarded answers to this host, and to who shows the token.
func guarded(handler http.Handler, token Token) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := Refusal(r); why != "" {
			fail(w, http.StatusForbidden, why)
			return
		}
		if !token.shown(r) {
			fail(w, http.StatusForbidden, withoutToken)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// Paths are those that Handler serves.
func Paths() []string {
	return []string{"/snapshot", "/snapshot/steer", "/inventory", "/checkpoint", "/deadletter/replay"}
}

// asked answers what changes something with what do makes of the request's body; such is what that could have been.
func asked[Q, A any](status int, such string, do func(context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// No form of a web page can declare its body as JSON without being asked first (CORS preflight, Fetch
		// standard).
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			fail(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
			return
		}
		var request Q
		var document A
		controller := http.NewResponseController(w)
		controller.SetReadDeadline(time.Now().Add(bodyTime)) // where it fails, reading fails, too
		err := Decode(http.MaxBytesReader(w, r.Body, maxRequest), &request, such)
		controller.SetReadDeadline(time.Time{}) // the answer may take longer
		if err == nil {
			document, err = do(r.Context(), request)
		}
		reply(w, status, document, err)
	}
}

// shown answers with a document.
func shown[A any](document func() (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		made, err := document()
		reply(w, http.StatusOK, made, err)
	}
}

// reply answers with the document, or with the error where there is one.
func reply(w http.ResponseWriter, status int, document any, err error) {
	if err != nil {
		status, document = StatusOf(err), problem{err.Error()}
	}
	answer(w, status, document)
}

// Decode reads what is asked for. Its error is a *RefusedError, and shows what such a text could have been.
func Decode(text io.Reader, into any, such string) error {
	decoder := json.NewDecoder(text)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.More() {
		err = errors.New("something follows it")
	}
	if err != nil {
		return &RefusedError{fmt.Sprintf("read the request: %v: want JSON such as %s", err, such)}
	}
	return nil
}

// serveInventory writes a line for each object, until the reader is gone or the server stops. What cuts it short is the
// last line: the answer has begun, and its status says nothing any more.
func (f *Functions) serveInventory(w http.ResponseWriter, r *http.Request) {
	var query Query
	known := query.fields()
	for key, values := range r.URL.Query() { // a misspelt filter would list everything
		into := known[key]
		if into == nil || len(values) != 1 {
			reply(w, 0, nil, &RefusedError{fmt.Sprintf("query %s: want each at most once of name, namespace, resource, sink, uid", key)})
			return
		}
		*into = values[0]
	}
	objects, err := f.Inventory(query)
	if err != nil {
		reply(w, 0, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	control, encoder := http.NewResponseController(w), json.NewEncoder(w)
	written := 0
	for object, err := range objects {
		if err == nil && r.Context().Err() != nil {
			err = errors.New("the exporter stops: ask again")
		}
		if err != nil {
			encoder.Encode(problem{err.Error()}) // a reader that went away is no error of ours
			return
		}
		if written%flushEvery == 0 {
			control.SetWriteDeadline(time.Now().Add(readerTime)) // where it fails, writing fails, too
		}
		if encoder.Encode(object) != nil {
			return
		}
		written++
	}
}

// StatusOf tells the asker's mistakes from failures of ours, as a status of HTTP.
func StatusOf(err error) int {
	switch {
	case errors.As(err, new(*RefusedError)):
		return http.StatusBadRequest
	case errors.As(err, new(*RepeatedError)):
		return http.StatusConflict
	case errors.Is(err, ErrNotStreaming):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

func fail(w http.ResponseWriter, status int, text string) { answer(w, status, problem{text}) }

func answer(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.Encode(document) // a reader that went away is no error of ours
}

// Functions are what the server asks of the exporter. Each may be called from several goroutines. An error that is a
// *RefusedError is the asker's mistake.
type Functions struct {
	// Snapshot sees to a full snapshot, and returns when it is certain to begin.
	Snapshot func(ctx context.Context, request SnapshotRequest) (*Snapshot, error)
	// Owed are the snapshots that are not delivered yet, and those that were stopped in this life, the last ones at
	// least.
	Owed func() (*OwedList, error)
	// Steer stops, pauses or resumes snapshots, and returns when that is durable.
	Steer func(ctx context.Context, request SteerRequest) error
	// Inventory finds what the query is of before the first object is read.
	Inventory func(query Query) (iter.Seq2[Object, error], error)
	// Checkpoint reads the saved state.
	Checkpoint func() (*State, error)
	// Replay sends dead letters again, and returns what became of each.
	Replay func(ctx context.Context, request ReplayRequest) (*Replayed, error)
}

// SnapshotRequest is the body of POST /snapshot.
type SnapshotRequest struct {
	// Resources as kubectl writes them, or as they are configured; none is all.
	Resources []string `json:"resources,omitempty"`
	// Sink that the snapshot is for; "" is all.
	Sink string `json:"sink,omitempty"`
	// Namespace, Name and Selector, of labels, say which objects it is of; "" is all.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Selector  string `json:"selector,omitempty"`
}

// Snapshot is the answer to a SnapshotRequest: the snapshots are owed from now on, also over a restart.
type Snapshot struct {
	Streams []string `json:"streams"`
	Sinks   []string `json:"sinks"`
	// Limits say which objects it is of, where it is not of all.
	Limits change.Limits `json:"limits,omitzero"`
	// Time is when it was asked for, by the exporter's clock.
	Time time.Time `json:"time"`
}

// OwedList is the answer to GET /snapshot.
type OwedList struct {
	Owed    []Owed    `json:"owed"`
	Stopped []Stopped `json:"stopped,omitempty"`
}

// SteerRequest is the body of POST /snapshot/steer. What it asks for is done for all of the snapshots, or for none.
type SteerRequest struct {
	Do  string   `json:"do"` // stop, pause or resume
	IDs []string `json:"ids"`
}

// ReplayRequest is the body of POST /deadletter/replay.
type ReplayRequest struct {
	// Sink whose letters are meant; "" is every sink.
	Sink string `json:"sink,omitempty"`
	// IDs of the letters; none is all.
	IDs []string `json:"ids,omitempty"`
	// Force sends also what is history.
	Force bool `json:"force,omitempty"`
}

// Replayed is the answer to a ReplayRequest: what became of each letter, the oldest first.
type Replayed struct {
	Letters []ReplayedLetter `json:"letters"`
}

// ReplayedLetter is what became of one letter.
type ReplayedLetter struct {
	Sink            string `json:"sink"`
	ID              string `json:"id"`
	Stream          string `json:"stream,omitempty"`
	Object          string `json:"object,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Delivered says that the sink holds it, and that the letter is removed. Otherwise Kept says why the letter is
	// kept.
	Delivered bool   `json:"delivered"`
	Kept      string `json:"kept,omitempty"`
	// LeftOut is what it was sent without, since it did not fit: paths, and before.
	LeftOut string `json:"leftOut,omitempty"`
}

// What can be done with a snapshot that is owed.
const (
	Stop   = "stop"
	Pause  = "pause"
	Resume = "resume"
)

// ErrNotStreaming says that the exporter cannot take a request yet, or no more.
var ErrNotStreaming = errors.New("the exporter does not stream yet, because a sink or the state is not open, or it is about to stop: see /statusz, and ask again")

// RefusedError is a question that cannot be answered as it was asked. Its text names what could be asked.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// RepeatedError is a question that was followed before.
type RepeatedError struct{ ID string }

func (e *RepeatedError) Error() string {
	return fmt.Sprintf("id %.100q was followed before, and nothing is done twice: give another question an id of its own", e.ID)
}

// problem is the body of every answer that is an error, and the last line of an inventory that was cut short.
type problem struct {
	Error string `json:"error"`
}

// Token is what a question shows beside coming from this host: that who asks may read the exporter's state directory.
// Neither a web page nor a proxy in front of the port has it. Each start of the exporter has one of its own.
type Token struct{ text string }

// NewToken makes a token of 130 random bits.
func NewToken() Token { return Token{rand.Text()} }

// withoutToken says what to do.
const withoutToken = "this is answered to the exporter's own user alone: run the command with --state-dir on the exporter's host or in its pod, " +
	"or give it with --server the token, which is the third word of the file address in the state directory, in the environment as KUBECDC_TOKEN"

// scheme is of the header Authorization (RFC 6750).
const scheme = "Bearer "

func (t Token) show(r *http.Request) {
	if t.text != "" {
		r.Header.Set("Authorization", scheme+t.text)
	}
}

// shown says whether the request has the token.
func (t Token) shown(r *http.Request) bool {
	text, found := strings.CutPrefix(r.Header.Get("Authorization"), scheme)
	return found && t.text != "" && subtle.ConstantTimeCompare([]byte(text), []byte(t.text)) == 1
}

// Refusal says why the request is not answered, "" where it is: what names objects is for the exporter's own host, as
// the questions of this package are.
//
// The port also serves metrics, and so is open to others. Who reaches it over the loopback interface is on the
// exporter's host, or in its pod, or was let in by kubectl port-forward. What is left are programs on this host that
// carry the wish of somebody else: a proxy, which says so, and a browser, which names the page it asks for (Origin, RFC
// 6454), and the name under which it found us (Host): with a name that is no loopback address, that is DNS rebinding.
// The proxy of a service mesh hands connections of other hosts on from a loopback address, without a word and to the
// pod's own address.
//
// A proxy on this host that says nothing of itself cannot be told from a program here. So what may be asked for, and
// changed, wants a Token beside; the page does not, since a browser behind kubectl port-forward has none.
func Refusal(r *http.Request) string {
	local, known := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	switch {
	case !isLoopback(r.RemoteAddr) || known && !isLoopback(local.String()): // to an address that other hosts know, too
		return "this is answered on the loopback interface only: run the command on the exporter's host, in its pod, or through kubectl port-forward"
	case isProxied(r.Header):
		return "this is not answered through a proxy: run the command on the exporter's host, in its pod, or through kubectl port-forward"
	case r.Header.Get("Origin") != "":
		return "this is not answered to web pages: use the exporter's own commands"
	case !isLocalName(r.Host):
		return "this is answered under a loopback address only: use 127.0.0.1 or localhost, not " + r.Host
	}
	return ""
}

// isLoopback takes host and port.
func isLoopback(address string) bool {
	peer, err := netip.ParseAddrPort(address)
	return err == nil && peer.Addr().IsLoopback()
}

// isLocalName takes a Host header, with or without a port.
func isLocalName(name string) bool {
	host, _, err := net.SplitHostPort(name)
	if err != nil {
		host = strings.Trim(name, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}

// isProxied finds the headers of RFC 7239 and of those before it.
func isProxied(header http.Header) bool {
	for name := range header {
		if name == "Forwarded" || name == "Via" || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}
