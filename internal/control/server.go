package control

import (
	"bytes"
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
	"github.com/kubecdc/kubecdc/internal/pipeline"
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

// Question answers a text in JSON with a document. Its error is a *RefusedError where it is the asker's mistake.
type Question func(ctx context.Context, text []byte) (document any, err error)

// Asked is a Question of what do makes of the text; such is one that could be.
func Asked[Q, A any](such string, do func(context.Context, Q) (A, error)) Question {
	return func(ctx context.Context, text []byte) (any, error) {
		var asked Q
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&asked)
		if err == nil && decoder.More() {
			err = errors.New("something follows it")
		}
		if err != nil {
			return nil, &RefusedError{Text: fmt.Sprintf("read the request: %v: want JSON such as %s", err, such)}
		}
		return do(ctx, asked)
	}
}

// Shown is a Question that wants no text.
func Shown[A any](document func() (A, error)) Question {
	return func(context.Context, []byte) (any, error) { return document() }
}

// Questions are what is asked over HTTP, but for the inventory: by method and path, each one of Paths. Each may be
// asked from several goroutines.
type Questions map[string]Question

// Inventory finds what the query is of before the first object is read.
type Inventory func(Query) (iter.Seq2[Object, error], error)

// Handler serves the questions, and nothing else, to who shows the token.
func Handler(questions Questions, inventory Inventory, token Token) http.Handler {
	mux := http.NewServeMux()
	for pattern, ask := range questions {
		mux.Handle(pattern, ask.serve(pattern))
	}
	mux.HandleFunc("GET /inventory", inventory.serve)
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

// serve answers. What changes something has a body.
func (ask Question) serve(pattern string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		if pattern == "POST /snapshot" { // which is owed, and not delivered yet
			status = http.StatusAccepted
		}
		var text []byte
		if r.Method == http.MethodPost {
			// No form of a web page can declare its body as JSON without being asked first (CORS preflight, Fetch
			// standard).
			if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
				fail(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
				return
			}
			controller := http.NewResponseController(w)
			controller.SetReadDeadline(time.Now().Add(bodyTime)) // where it fails, reading fails, too
			var err error
			if text, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest)); err != nil {
				reply(w, 0, nil, &RefusedError{Text: fmt.Sprintf("read the request: %v", err)})
				return
			}
			controller.SetReadDeadline(time.Time{}) // the answer may take longer
		}
		document, err := ask(r.Context(), text)
		reply(w, status, document, err)
	}
}

// reply answers with the document, or with the error where there is one.
func reply(w http.ResponseWriter, status int, document any, err error) {
	if err != nil {
		status, document = StatusOf(err), problem{err.Error()}
	}
	answer(w, status, document)
}

// serve writes a line for each object, until the reader is gone or the server stops. What cuts it short is the
// last line: the answer has begun, and its status says nothing any more.
func (find Inventory) serve(w http.ResponseWriter, r *http.Request) {
	var query Query
	known := query.fields()
	for key, values := range r.URL.Query() { // a misspelt filter would list everything
		into := known[key]
		if into == nil || len(values) != 1 {
			reply(w, 0, nil, &RefusedError{Text: fmt.Sprintf("query %s: want each at most once of name, namespace, resource, sink, uid", key)})
			return
		}
		*into = values[0]
	}
	objects, err := find(query)
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
	case errors.Is(err, pipeline.ErrNotStreaming):
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

// RefusedError is a question that cannot be answered as it was asked. Its text names what could be asked.
type RefusedError = pipeline.RefusedError

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
