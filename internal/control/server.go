package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"
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
		if why := refusal(r); why != "" {
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
		var request Q
		if readJSON(w, r, &request, such) {
			made, err := do(r.Context(), request)
			reply(w, status, made, err)
		}
	}
}

// shown answers with a document.
func shown[A any](document func() (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		made, err := document()
		reply(w, http.StatusOK, made, err)
	}
}

func reply(w http.ResponseWriter, status int, document any, err error) {
	if err != nil {
		failWith(w, err)
		return
	}
	answer(w, status, document)
}

// readJSON reads the body of a request that changes something. Where it is false the request is answered; such is what
// the body could have been.
func readJSON(w http.ResponseWriter, r *http.Request, into any, such string) bool {
	if !isJSON(r) {
		fail(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
		return false
	}
	controller := http.NewResponseController(w)
	if !known(controller.SetReadDeadline(time.Now().Add(bodyTime))) {
		return false
	}
	err := Decode(http.MaxBytesReader(w, r.Body, maxRequest), into, such)
	if !known(controller.SetReadDeadline(time.Time{})) { // the answer may take longer
		return false
	}
	if err != nil {
		failWith(w, err)
		return false
	}
	return true
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

func (f *Functions) serveInventory(w http.ResponseWriter, r *http.Request) {
	var objects iter.Seq2[Object, error]
	query, err := readQuery(r)
	if err == nil {
		objects, err = f.Inventory(query)
	}
	if err != nil {
		failWith(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	writeObjects(w, r, objects)
}

// readQuery refuses what it does not know: a misspelt filter would list everything.
func readQuery(r *http.Request) (Query, error) {
	var query Query
	known := map[string]*string{"resource": &query.Resource, "namespace": &query.Namespace, "name": &query.Name, "uid": &query.UID, "sink": &query.Sink}
	for key, values := range r.URL.Query() {
		into := known[key]
		if into == nil || len(values) != 1 {
			return query, &RefusedError{fmt.Sprintf("query %s: want each at most once of name, namespace, resource, sink, uid", key)}
		}
		*into = values[0]
	}
	return query, nil
}

// writeObjects writes a line for each object, until the reader is gone or the server stops. What cuts it short is the
// last line: the answer has begun, and its status says nothing any more.
func writeObjects(w http.ResponseWriter, r *http.Request, objects iter.Seq2[Object, error]) {
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
		if written%flushEvery == 0 && !awaitReader(control) {
			return
		}
		if encoder.Encode(object) != nil {
			return
		}
		written++
	}
}

// awaitReader gives the reader time anew. It is false where there is no reader any more.
func awaitReader(control *http.ResponseController) bool {
	return known(control.SetWriteDeadline(time.Now().Add(readerTime)))
}

// known is false where a connection is gone. What has no deadlines is none.
func known(err error) bool { return err == nil || errors.Is(err, http.ErrNotSupported) }

func failWith(w http.ResponseWriter, err error) { fail(w, StatusOf(err), err.Error()) }

// StatusOf tells the asker's mistakes from failures of ours, as a status of HTTP.
func StatusOf(err error) int {
	var refused *RefusedError
	var repeated *RepeatedError
	switch {
	case errors.As(err, &refused):
		return http.StatusBadRequest
	case errors.As(err, &repeated):
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
