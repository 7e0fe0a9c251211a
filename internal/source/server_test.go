package source

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// server is an API server in memory: it has the objects of one resource, lists them page by page, and its watches tell
// what happens to them. What it does otherwise a test says.
type server struct {
	mu       sync.Mutex // guards the following
	uid      string     // of the cluster
	version  int
	oldest   int // a watch from before this version is refused,
	kept     int // and a list of before this one
	objects  map[string]event
	history  []event
	watches  []*stream
	requests []string
	pageSize int // 0 is what is asked for
	servers  int // identity Leases
	// answer, where set, answers a request otherwise; nil is as usual. It is called without the lock.
	answer func(kind string, q url.Values) *http.Response
	down   bool // nobody answers
	frozen bool // watches say nothing and do not end
}

// event is what happened to an object.
type event struct {
	kind    string // as in a frame
	key     string // n/name
	uid     string
	version int
	text    string // instead of all that, the object's JSON
}

func newServer(version int) *server {
	return &server{uid: "epoch-1", version: version, objects: map[string]event{}, servers: 1}
}

// do does each: "a 10" writes the object n/a at version 10, "a 10 u2" with that uid; "-a 12" deletes it; "100" is that
// something else happens up to there, and "=100" what a bookmark tells of, too.
func (s *server) do(each ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range each {
		what, version, uid := parts(text)
		bookmark := strings.HasPrefix(what, "=")
		if version == 0 {
			version, what = number(strings.TrimPrefix(what, "=")), ""
		}
		s.version = max(s.version, version)
		if what == "" {
			s.wake(bookmark)
			continue
		}
		name, gone := strings.CutPrefix(what, "-")
		key := keyOf(name).String()
		was, is := s.objects[key]
		ev := event{"ADDED", key, uid, version, ""}
		switch {
		case gone:
			ev.kind, ev.uid = "DELETED", was.uid
			delete(s.objects, key)
		case is && (uid == "" || uid == was.uid):
			ev.kind, ev.uid = "MODIFIED", was.uid
		case uid == "":
			ev.uid = "uid-" + name
		}
		if !gone {
			s.objects[key] = ev
		}
		s.history = append(s.history, ev)
		s.wake(false)
	}
}

// parts are those of "what version uid".
func parts(text string) (what string, version int, uid string) {
	fields := append(strings.Fields(text), "", "", "")
	return fields[0], number(fields[1]), fields[2]
}

func number(text string) int { n, _ := strconv.Atoi(text); return n }

// set changes what the server is, while others ask it.
func (s *server) set(change func(s *server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// forget makes the version the oldest from which a watch can go on.
func (s *server) forget(version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest, s.kept = version, version
}

func (s *server) wake(bookmark bool) {
	for _, w := range s.watches {
		w.catchUp()
		if bookmark {
			w.say(bookmarkFrame(s.version))
		}
	}
}

// each does something with the watches that are open.
func (s *server) each(do func(w *stream)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range slices.Clone(s.watches) {
		do(w)
	}
}

// end ends the watches as a server does whose time is over, cut as a broken connection.
func (s *server) end() { s.each(func(w *stream) { w.finish(io.EOF) }) }
func (s *server) cut() { s.each(func(w *stream) { w.finish(io.ErrUnexpectedEOF) }) }

// send sends raw frames to the watches.
func (s *server) send(frames ...string) {
	s.each(func(w *stream) { w.say(frames...) })
}

// asked are the requests since it was asked last: "watch 100", "list 100", "list 100 token", "look a 100".
func (s *server) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.Join(s.requests, ", ")
	s.requests = nil
	return text
}

func (s *server) note(text ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, strings.Join(slices.DeleteFunc(text, func(one string) bool { return one == "" }), " "))
}

// RoundTrip is http.RoundTripper's.
func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	answer := s.reply(request)
	answer.Request, answer.ProtoMajor, answer.ProtoMinor = request, 1, 1
	return answer, nil
}

// CloseIdleConnections is http.Client's.
func (s *server) CloseIdleConnections() {}

func (s *server) reply(request *http.Request) *http.Response {
	q, kind := request.URL.Query(), "list"
	name, one := strings.CutPrefix(q.Get("fieldSelector"), "metadata.name=")
	switch path := request.URL.Path; {
	case strings.HasSuffix(path, "/kube-system"):
		kind = "cluster"
	case strings.HasSuffix(path, "/leases"):
		kind = "leases"
	case path == "/livez":
		kind = "live"
	case strings.HasSuffix(path, "/customresourcedefinitions"):
		kind = "definitions"
	case q.Get("watch") == "true":
		kind = "watch"
		s.note(kind, q.Get("resourceVersion"))
	case one:
		kind = "look"
		s.note(kind, name, q.Get("resourceVersion"))
	case q.Get("limit") == "1":
		kind = "version"
	default:
		s.note(kind, q.Get("resourceVersion"), q.Get("continue"))
	}
	if s.answer != nil {
		if answer := s.answer(kind, q); answer != nil {
			return answer
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case "cluster":
		return reply(200, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"`+s.uid+`"}}`)
	case "leases":
		leases := strings.Repeat(`,{"metadata":{"name":"apiserver-x"}}`, max(s.servers, 1))
		return reply(200, `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{},"items":[`+leases[1:]+`]}`)
	case "live":
		return reply(200, "ok")
	case "watch":
		return s.watch(request.Context(), q)
	}
	namespace := ""
	if part := strings.Split(request.URL.Path, "/"); len(part) == 6 {
		namespace = part[4]
	}
	return s.list(q, namespace, name)
}

// list answers with the page.
func (s *server) list(q url.Values, namespace, name string) *http.Response {
	version, behind := s.version, ""
	if asked := q.Get("resourceVersion"); asked != "" {
		version = number(asked)
	}
	if token := q.Get("continue"); token != "" {
		version, behind = readToken(token)
	}
	switch {
	case version > s.version:
		return reply(504, `{"metadata":{},"status":"Failure","message":"Too large resource version","reason":"Timeout","code":504}`)
	case version < s.kept:
		return reply(410, expired)
	}
	limit := number(q.Get("limit"))
	if s.pageSize > 0 {
		limit = min(limit, s.pageSize)
	}
	var items []string
	for _, ev := range s.at(version) {
		in, named, _ := strings.Cut(ev.key, "/")
		if ev.key <= behind || namespace != "" && namespace != in || name != "" && name != named {
			continue
		}
		if len(items) == limit {
			return pageOf(version, rangeToken(version, behind), items...)
		}
		items, behind = append(items, ev.json()), ev.key
	}
	return pageOf(version, "", items...)
}

// at are the objects as they were at the version, by key.
func (s *server) at(version int) []event {
	now := map[string]event{}
	for _, ev := range s.history {
		if ev.version > version {
			continue
		}
		if now[ev.key] = ev; ev.kind == "DELETED" {
			delete(now, ev.key)
		}
	}
	var all []event
	for _, ev := range now {
		all = append(all, ev)
	}
	slices.SortFunc(all, func(a, b event) int { return strings.Compare(a.key, b.key) })
	return all
}

func reply(code int, text string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}
}

const expired = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2737)","reason":"Expired","code":410}`

// pageOf is a page of items.
func pageOf(version int, token string, items ...string) *http.Response {
	return reply(200, fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":"%s"},"items":[%s]}`,
		version, token, strings.Join(items, ",")))
}

// pods are the items "a 10".
func items(all ...string) (json []string) {
	for _, text := range all {
		name, version, uid := parts(text)
		if uid == "" {
			uid = "uid-" + name
		}
		json = append(json, event{key: keyOf(name).String(), uid: uid, version: version}.json())
	}
	return json
}

// rangeToken is the token of a server that reads a range of etcd's keys.
func rangeToken(version int, last string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"v":"meta.k8s.io/v1","rv":%d,"start":"/%s\u0000"}`, version, last))
}

func readToken(token string) (version int, last string) {
	text, _ := base64.RawURLEncoding.DecodeString(token)
	_, _ = fmt.Sscanf(string(text), `{"v":"meta.k8s.io/v1","rv":%d,`, &version)
	_, last, _ = strings.Cut(string(text), `"start":"/`)
	return version, strings.TrimSuffix(last, `\u0000"}`)
}

func (e event) json() string {
	if e.text != "" {
		return e.text
	}
	namespace, name, _ := strings.Cut(e.key, "/")
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%s","namespace":"%s","uid":"%s","resourceVersion":"%d"}}`,
		name, namespace, e.uid, e.version)
}

func (e event) frame() string { return frameOf(e.kind, e.json()) }

func frameOf(kind, object string) string { return `{"type":"` + kind + `","object":` + object + `}` }

func bookmarkFrame(version int) string {
	return frameOf("BOOKMARK", fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}`, version))
}

func goneFrame(oldest int) string {
	return frameOf("ERROR", strings.Replace(expired, "2737", strconv.Itoa(oldest), 1))
}

// stream is one watch.
type stream struct {
	of   *server
	ctx  context.Context
	from int  // the version that it was opened at
	seen int  // so much of the history
	old  bool // it is to a server that is not at the address any more
	// guarded by the server's lock
	text    string
	over    error
	stopped bool
	changed chan struct{}
}

func (s *server) watch(ctx context.Context, q url.Values) *http.Response {
	from := number(q.Get("resourceVersion"))
	w := &stream{of: s, ctx: ctx, from: from, changed: make(chan struct{})}
	s.watches = append(s.watches, w)
	if seconds := number(q.Get("timeoutSeconds")); seconds > 0 && !s.frozen {
		time.AfterFunc(time.Duration(seconds)*time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			w.finish(io.EOF)
		})
	}
	if from < s.oldest {
		w.say(goneFrame(s.oldest))
		w.finish(io.EOF)
	}
	w.catchUp()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: w}
}

// catchUp says what happened. The caller holds the server's lock, as for the following.
func (w *stream) catchUp() {
	if w.over != nil || w.of.frozen || w.old {
		return
	}
	for _, ev := range w.of.history[w.seen:] {
		if ev.version > w.from {
			w.say(ev.frame())
		}
	}
	w.seen = len(w.of.history)
}

func (w *stream) say(frames ...string) {
	for _, f := range frames {
		w.text += f + "\n"
	}
	w.wake()
}

// finish ends the watch after what it has said.
func (w *stream) finish(why error) {
	if w.over != nil {
		return
	}
	w.over = why
	w.of.watches = slices.DeleteFunc(w.of.watches, func(other *stream) bool { return other == w })
	w.wake()
}

func (w *stream) wake() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// Read is io.Reader's.
func (w *stream) Read(p []byte) (int, error) {
	for {
		w.of.mu.Lock()
		n, over, changed := copy(p, w.text), w.over, w.changed
		if w.stopped {
			over = io.ErrClosedPipe
		}
		w.text = w.text[n:]
		w.of.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case over != nil:
			return 0, over
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			return 0, context.Cause(w.ctx)
		}
	}
}

// Close is io.Closer's.
func (w *stream) Close() error {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.stopped = true
	w.finish(io.ErrClosedPipe)
	return nil
}

// versionOf is the resourceVersion in an object of the server.
func versionOf(object []byte) string {
	_, rest, _ := strings.Cut(string(object), `"resourceVersion":"`)
	version, _, _ := strings.Cut(rest, `"`)
	return version
}

func pods() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}
