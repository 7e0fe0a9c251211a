package sim

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pageLimit is the most objects that the server puts on a page, whatever a client asks for: small worlds have pages,
// too.
const pageLimit = 2

// apiServer answers lists and watches of an etcd. All of it is guarded by the world's lock.
type apiServer struct {
	world  *world
	etcd   *etcd
	window int       // the oldest revision from which the watch cache can continue
	down   time.Time // nobody answers before
	silent time.Time // no watch says anything before
	// faults that the script has ordered, each for the next requests of its kind
	refuse, fail, empty, goneStatus, cutPage int
	drop, duplicate                          map[string]int // by resource: the next frames of a watch
	lost                                     map[string]map[int]bool
	unseen                                   map[string]bool   // uids of objects whose begin was lost
	shown                                    map[string]int    // by resource: the newest revision that a watch has sent
	deaf                                     int               // watches from below this revision end at once with nothing
	hold                                     map[string]bool   // by resource: nothing changes until the new timeline is known and saved
	asked, watched                           map[string]bool   // by resource: it was listed since, and watched after that
	version                                  map[string]string // by resource: the one that it prefers; it serves them all
	watches                                  map[*watchBody]struct{}
	changed                                  chan struct{} // closed and made anew when a watch may have something to say
}

func newAPIServer(w *world) *apiServer {
	s := &apiServer{world: w, watches: map[*watchBody]struct{}{}, changed: make(chan struct{})}
	s.drop, s.duplicate, s.shown = map[string]int{}, map[string]int{}, map[string]int{}
	s.unseen = map[string]bool{}
	s.hold, s.asked, s.watched = map[string]bool{}, map[string]bool{}, map[string]bool{}
	s.lost = map[string]map[int]bool{pods: {}, events: {}}
	s.version = map[string]string{pods: "v1", events: "v1"}
	s.etcd = newEtcd(&w.uids)
	s.window = s.etcd.rev
	return s
}

// wake tells the watches; the caller holds the world's lock.
func (s *apiServer) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// lag keeps the watches from saying anything for a while; lists are answered.
func (s *apiServer) lag(d time.Duration) {
	s.silent = time.Now().Add(d)
	time.AfterFunc(d, func() {
		s.world.mu.Lock()
		defer s.world.mu.Unlock()
		s.wake()
	})
}

// restart forgets the watch cache and cuts all watches.
func (s *apiServer) restart(clean bool) {
	s.window = s.etcd.rev
	for b := range s.watches {
		b.end(clean)
	}
	s.wake()
}

// begin starts a new timeline: an etcd that was restored, or another cluster. An etcd that has overtaken the exporter's
// positions before it knows cannot be told from the old one, so nothing changes before that.
func (s *apiServer) begin() {
	s.hold[pods], s.hold[events], s.world.kept = true, true, nil // what begins does not lag
	clear(s.asked)
	clear(s.watched)
	s.deaf = 0
	s.down = time.Now().Add(100 * time.Millisecond) // longer than a client takes from its questions to its watch
	clear(s.shown)
	s.restart(false)
}

// prefer makes the server prefer another version of the resource, in which the exporter then goes on.
func (s *apiServer) prefer(l *life, resource string) {
	s.version[resource] = map[string]string{"v1": "v1beta1", "v1beta1": "v1"}[s.version[resource]]
	for _, one := range l.sessions {
		if one.resource == resource {
			one.session.Serve(s.version[resource])
		}
	}
}

// transport is the API server as one life of the exporter reaches it.
type transport struct {
	server *apiServer
	life   *life
}

// CloseIdleConnections is what client-go asks for when a watch was refused. There are none.
func (*transport) CloseIdleConnections() {}

// RoundTrip answers a request after a while. Nothing is answered to a life that has ended.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := t.life.step("api"); err != nil {
		return nil, err
	}
	if err := t.life.linger(request.Context(), 1, 4); err != nil {
		return nil, err
	}
	w := t.server.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.life.dead {
		return nil, errDead
	}
	response := t.answer(request)
	if response == nil {
		return nil, fmt.Errorf("dial tcp: connection refused")
	}
	response.Request, response.ProtoMajor, response.ProtoMinor = request, 1, 1
	return response, nil
}

// take counts down an ordered fault.
func take(n *int) bool {
	if *n == 0 {
		return false
	}
	*n--
	return true
}

func (t *transport) answer(request *http.Request) *http.Response {
	s, q := t.server, request.URL.Query()
	if time.Now().Before(s.down) {
		return nil
	}
	if !strings.HasPrefix(request.URL.Path, "/api/") { // whether it lives, and how many of it there are
		return status(403, "Forbidden", "it is not allowed")
	}
	from := placeOf(request.URL.Path)
	if from.resource == "kube-system" {
		return t.whoami()
	}
	note := "list " + from.String()
	if q.Get("watch") == "true" {
		note = "watch " + from.String()
	}
	note += " " + q.Get("resourceVersion") + q.Get("continue") + " limit " + q.Get("limit")
	t.life.noteLocked("api", note)
	switch {
	case take(&s.refuse):
		return nil
	case take(&s.fail):
		return status(500, "InternalError", "etcdserver: leader changed")
	case q.Get("watch") == "true":
		return s.watch(t.life, request, from)
	}
	if name, one := strings.CutPrefix(q.Get("fieldSelector"), "metadata.name="); one { // else it chooses all
		from.name = name
	}
	return s.list(from, q)
}

// place is what a list or a watch is of.
type place struct {
	version, resource string
	namespace, name   string // "" is all
}

// placeOf reads a path: /api/v1/pods, /api/v1/namespaces/shop/pods.
func placeOf(path string) place {
	part := strings.Split(path, "/")
	p := place{version: part[2], resource: part[len(part)-1]}
	if len(part) == 6 {
		p.namespace = part[4]
	}
	return p
}

func (p place) String() string { return strings.TrimPrefix(p.namespace+"/"+p.resource, "/") }

// has says whether the object is there.
func (p place) has(ev *event) bool {
	namespace, name, _ := strings.Cut(ev.key, "/")
	return ev.resource == p.resource && (p.namespace == "" || p.namespace == namespace) && (p.name == "" || p.name == name)
}

// whoami answers with namespace kube-system.
func (t *transport) whoami() *http.Response {
	text := `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"` + t.server.etcd.uid + `"}}`
	return &http.Response{StatusCode: 200, Header: header(), Body: io.NopCloser(strings.NewReader(text))}
}

func (s *apiServer) watch(l *life, request *http.Request, of place) *http.Response {
	q, resource := request.URL.Query(), of.resource
	from, err := strconv.Atoi(q.Get("resourceVersion"))
	if err != nil || from == 0 {
		l.world.violateLocked("I4", "a watch of %s from resourceVersion %q: what came before is unknown", resource, q.Get("resourceVersion"))
	}
	if from <= s.etcd.rev && s.asked[resource] {
		s.watched[resource] = true
	}
	oldest := s.window
	if resource == events {
		oldest = s.etcd.compacted
	}
	tooOld := "The resourceVersion for the provided watch is too old."
	if resource != events {
		tooOld = fmt.Sprintf("too old resource version: %d (%d)", from, oldest)
	}
	if from < oldest && take(&s.goneStatus) {
		return status(410, "Expired", tooOld)
	}
	b := &watchBody{server: s, life: l, ctx: request.Context(), place: of, sent: from, stop: make(chan struct{})}
	switch {
	case from < oldest:
		b.pending = `{"type":"ERROR","object":` + statusJSON(410, "Expired", tooOld) + "}\n"
		b.end(true)
	case from < s.deaf, take(&s.empty):
		b.end(true)
	}
	s.watches[b] = struct{}{}
	return &http.Response{StatusCode: 200, Header: header(), Body: b}
}

// list answers a list of the objects of the place.
func (s *apiServer) list(of place, q url.Values) *http.Response {
	rev, last := s.etcd.rev, ""
	if token := q.Get("continue"); token != "" {
		var err error
		if rev, last, err = readToken(token); err != nil {
			return status(400, "BadRequest", "continue key is not valid")
		}
	} else if version := q.Get("resourceVersion"); version != "" {
		rev, _ = strconv.Atoi(version)
	}
	switch {
	case rev > s.etcd.rev:
		return status(504, "Timeout", "Too large resource version")
	case rev == newest:
		rev = s.etcd.rev
	case rev < s.etcd.compacted && last != "" && of.resource == pods: // an inconsistent list goes on
		return expired(tokenOf(of.resource, newest, last))
	case rev < s.etcd.compacted:
		return status(410, "Expired", "The resourceVersion for the provided list is too old.")
	}
	limit, _ := strconv.Atoi(q.Get("limit"))
	s.asked[of.resource] = true
	return page(s, of, rev, last, min(limit, pageLimit))
}

// newest is the revision of a list that goes on at whatever the server has when it is asked.
const newest = -1

// expired is kube-apiserver's answer to a continue token that is too old: another that goes on.
func expired(token string) *http.Response {
	text := strings.Replace(statusJSON(410, "Expired", "The provided continue parameter is too old."), `"metadata":{}`, `"metadata":{"continue":"`+token+`"}`, 1)
	return &http.Response{StatusCode: 410, Header: header(), Body: io.NopCloser(strings.NewReader(text))}
}

// token is how kube-apiserver continues a list: with the range of keys that follows.
type token struct {
	Version string `json:"v"`
	Rev     int    `json:"rv"`
	Start   string `json:"start"`
}

// tokenOf is the token of a page that ends with the key. Pods have those of kube-apiserver, Events those of a server of
// another kind.
func tokenOf(resource string, rev int, last string) string {
	text := fmt.Appendf(nil, "%d %s", rev, last)
	if resource == pods {
		text, _ = json.Marshal(token{"meta.k8s.io/v1", rev, last + "\x00"}) // it has no type that could fail
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

func readToken(text string) (rev int, last string, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, "", err
	}
	var t token
	if json.Unmarshal(decoded, &t) == nil {
		return t.Rev, strings.TrimSuffix(t.Start, "\x00"), nil
	}
	_, err = fmt.Sscanf(string(decoded), "%d %s", &rev, &last)
	return rev, last, err
}

// compare is the order of the resource's lists.
func (s *apiServer) compare(resource, a, b string) int {
	if !s.world.script.Odd || resource != events {
		return strings.Compare(a, b)
	}
	namespaceA, nameA, _ := strings.Cut(a, "/")
	namespaceB, nameB, _ := strings.Cut(b, "/")
	return cmp.Or(strings.Compare(namespaceA, namespaceB), strings.Compare(nameA, nameB))
}

func page(s *apiServer, of place, rev int, last string, limit int) *http.Response {
	var items []string
	resource, next := of.resource, ""
	all := s.etcd.at(resource, rev)
	slices.SortFunc(all, func(a, b event) int { return s.compare(resource, a.key, b.key) })
	for _, ev := range all {
		if last != "" && s.compare(resource, ev.key, last) <= 0 || !of.has(&ev) {
			continue
		}
		if len(items) == limit {
			next = tokenOf(resource, rev, last)
			break
		}
		items, last = append(items, itemJSON(&ev)), ev.key
	}
	text := fmt.Sprintf(`{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"%d","continue":"%s"},"items":[%s]}`,
		kindOf(resource), rev, next, strings.Join(items, ","))
	body := io.Reader(strings.NewReader(text))
	if len(items) > 0 && take(&s.cutPage) {
		body = io.MultiReader(strings.NewReader(text[:len(text)*3/4]), brokenReader{})
	}
	return &http.Response{StatusCode: 200, Header: header(), Body: io.NopCloser(body)}
}

// brokenReader is the end of a broken connection.
type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func header() http.Header { return http.Header{"Content-Type": {"application/json"}} }

func status(code int, reason, message string) *http.Response {
	return &http.Response{StatusCode: code, Header: header(), Body: io.NopCloser(strings.NewReader(statusJSON(code, reason, message)))}
}
