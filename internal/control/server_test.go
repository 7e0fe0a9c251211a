package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/pipeline"
)

// fake is an exporter that remembers what it was asked.
type fake struct {
	asked   []any
	err     error
	owed    []Owed
	objects iter.Seq2[Object, error]
	query   Query
}

func (f *fake) questions() Questions {
	return Questions{
		"POST /snapshot": Asked(`{"resources":["pods"],"sink":"out"}, both optional`, func(_ context.Context, r SnapshotRequest) (*Snapshot, error) {
			f.asked = append(f.asked, r)
			return &Snapshot{Streams: []string{"pods"}, Sinks: []string{"out"}}, f.err
		}),
		"POST /snapshot/steer": Asked("", func(_ context.Context, r SteerRequest) (SteerRequest, error) {
			f.asked = append(f.asked, r)
			return r, f.err
		}),
		"POST /deadletter/replay": Asked("", func(_ context.Context, r ReplayRequest) (*Replayed, error) {
			f.asked = append(f.asked, r)
			return &Replayed{Letters: []ReplayedLetter{{Sink: "bus", ID: "1", Delivered: true}, {Sink: "bus", ID: "2", Kept: "superseded"}}}, f.err
		}),
		"GET /snapshot":   Shown(func() (*OwedList, error) { return &OwedList{Owed: f.owed}, f.err }),
		"GET /checkpoint": Shown(func() (*State, error) { return &State{Cluster: "dev"}, f.err }),
	}
}

func (f *fake) handler() http.Handler {
	return Handler(f.questions(), func(q Query) (iter.Seq2[Object, error], error) { f.query = q; return f.objects, f.err }, token)
}

// post is a request as the client sends it, over loopback.
func post(path, body string) *http.Request {
	r := httptest.NewRequest("POST", "http://127.0.0.1:8080"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Content-Type", "application/json")
	token.show(r)
	return r
}

// token is of the exporter that a test asks.
var token = NewToken()

func serve(f *fake, r *http.Request) *http.Response {
	recorder := httptest.NewRecorder()
	f.handler().ServeHTTP(recorder, r)
	return recorder.Result()
}

func read(t *testing.T, response *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return string(body)
}

// TestOnlyThisHostIsAnswered: nobody else changes anything, nor learns a name.
func TestOnlyThisHostIsAnswered(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*http.Request)
		refused int // with this status; 0 is not
	}{
		{"as the client", func(*http.Request) {}, 0},
		{"IPv6", func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:50000", "[::1]:8080" }, 0},
		{"IPv4 in IPv6", func(r *http.Request) { r.RemoteAddr = "[::ffff:127.0.0.1]:50000" }, 0},
		{"localhost", func(r *http.Request) { r.Host = "LocalHost:9999" }, 0},
		{"no port", func(r *http.Request) { r.Host = "[::1]" }, 0},
		{"charset", func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, 0},
		{"without the token", func(r *http.Request) { r.Header.Del("Authorization") }, 403},
		{"with another token", func(r *http.Request) { NewToken().show(r) }, 403},
		{"with a part of the token", func(r *http.Request) { Token{token.text[1:]}.show(r) }, 403},
		{"another host", func(r *http.Request) { r.RemoteAddr = "10.0.0.7:50000" }, 403},
		{"another host in IPv6", func(r *http.Request) { r.RemoteAddr = "[::ffff:10.0.0.7]:50000" }, 403},
		{"through the proxy of a service mesh", func(r *http.Request) {
			r.RemoteAddr, r.Host = "127.0.0.6:50000", "localhost:8080"
			to := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8080}
			*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, to))
		}, 403},
		{"no address", func(r *http.Request) { r.RemoteAddr = "@" }, 403},
		{"proxy", func(r *http.Request) { r.Header.Set("X-Forwarded-For", "127.0.0.1") }, 403},
		{"proxy of RFC 7239", func(r *http.Request) { r.Header.Set("Forwarded", "for=127.0.0.1") }, 403},
		{"web page", func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8080") }, 403},
		{"DNS rebinding", func(r *http.Request) { r.Host = "evil.example.com:8080" }, 403},
		{"a name like localhost", func(r *http.Request) { r.Host = "localhost.evil.example.com" }, 403},
		{"no host", func(r *http.Request) { r.Host = "" }, 403},
		{"form", func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 415},
		{"plain text", func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		{"no type", func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		{"put", func(r *http.Request) { r.Method = "PUT" }, 405},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{objects: func(func(Object, error) bool) {}}
			for path, status := range map[string]int{"/snapshot": 202, "/snapshot/steer": 200, "/deadletter/replay": 200} {
				r := post(path, `{}`)
				c.change(r)
				response := serve(f, r)
				if want := cmp.Or(c.refused, status); response.StatusCode != want || (len(f.asked) == 1) != (c.refused == 0) {
					t.Errorf("%s: status %d, asked %d times, want %d: %s", path, response.StatusCode, len(f.asked), want, read(t, response))
				}
				if f.asked = nil; response.Header.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("%s: an origin is allowed", path)
				}
			}
			for _, path := range []string{"/snapshot", "/inventory", "/checkpoint"} {
				read := httptest.NewRequest("GET", "http://127.0.0.1"+path, nil)
				read.RemoteAddr = "127.0.0.1:50000"
				token.show(read)
				if c.change(read); c.refused == 403 && serve(f, read).StatusCode != 403 {
					t.Errorf("%s is read", path)
				}
			}
		})
	}
}

func TestWrongRequestsAreRefused(t *testing.T) {
	const snapshot = `: want JSON such as {\"resources\":[\"pods\"],\"sink\":\"out\"}, both optional`
	for question, text := range map[string]string{
		"/snapshot ":                    "read the request: EOF" + snapshot,
		`/snapshot {"resource":"pods"}`: `read the request: json: unknown field \"resource\"` + snapshot,
		`/snapshot {} {}`:               "read the request: something follows it" + snapshot,
		`/deadletter/replay {"id":"1"}`: `read the request: json: unknown field \"id\"`,
	} {
		f := &fake{}
		path, body, _ := strings.Cut(question, " ")
		response := serve(f, post(path, body))
		if got := read(t, response); response.StatusCode != 400 || !strings.Contains(got, text) || len(f.asked) > 0 {
			t.Errorf("%q: status %d, %s", question, response.StatusCode, got)
		}
	}
	r := httptest.NewRequest("GET", "http://localhost/inventory?namespce=a", nil)
	token.show(r)
	r.RemoteAddr = "127.0.0.1:1"
	if response := serve(&fake{}, r); response.StatusCode != 400 {
		t.Errorf("a misspelt filter gives %d", response.StatusCode)
	}
	large := post("/snapshot", `{"sink":"`+strings.Repeat("x", maxRequest)+`"}`)
	if response := serve(&fake{}, large); response.StatusCode != 400 {
		t.Errorf("a large request gives %d", response.StatusCode)
	}
}

// listen starts a server as the exporter does, and returns a client.
func listen(t *testing.T, f *fake) *Client { return asking(t, f.handler(), token.text) }

// asking is a client of a server that answers so.
func asking(t *testing.T, handler http.Handler, token string) *Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := NewClient(server.URL, token)
	must(t, err)
	return client
}

func TestClientUnderstandsTheServer(t *testing.T) {
	f := &fake{owed: []Owed{{Sink: "out", Stream: "pods", Reason: "requested"}}}
	client := listen(t, f)
	snapshot, err := client.Snapshot(t.Context(), SnapshotRequest{Resources: []string{"pods"}, Sink: "out"})
	steered := client.Steer(t.Context(), SteerRequest{Do: Pause, IDs: []string{"a", "b"}})
	replayed, replayErr := client.Replay(t.Context(), ReplayRequest{Sink: "bus", IDs: []string{"1", "2"}, Force: true})
	if err = errors.Join(err, steered, replayErr); err != nil || len(snapshot.Streams) != 1 || fmt.Sprint(replayed.Letters) != "[{bus 1    true  } {bus 2    false superseded }]" {
		t.Errorf("answered %+v, %+v, %v", snapshot, replayed, err)
	}
	if want := []any{
		SnapshotRequest{Resources: []string{"pods"}, Sink: "out"}, SteerRequest{Do: Pause, IDs: []string{"a", "b"}},
		ReplayRequest{Sink: "bus", IDs: []string{"1", "2"}, Force: true},
	}; !reflect.DeepEqual(f.asked, want) {
		t.Errorf("asked %+v, want %+v", f.asked, want)
	}
	if state, err := client.Checkpoint(t.Context()); err != nil || state.Cluster != "dev" {
		t.Errorf("checkpoint %+v %v", state, err)
	}
	for _, c := range []struct {
		err    error
		want   string
		refuse bool
	}{
		{&RefusedError{Text: "no sink"}, "no sink", true},
		{pipeline.ErrNotStreaming, "ask the exporter at " + client.base + ": " + pipeline.ErrNotStreaming.Error(), false},
		{errors.New("damaged"), "ask the exporter at " + client.base + ": damaged", false},
	} {
		f.err = c.err
		_, err := client.Snapshot(t.Context(), SnapshotRequest{})
		var refused *RefusedError
		if err == nil || err.Error() != c.want || errors.As(err, &refused) != c.refuse {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// TestInventoryIsStreamed: the first objects arrive while the last are not read yet, so that neither side holds all
// (I6).
func TestInventoryIsStreamed(t *testing.T) {
	arrived, total := make(chan struct{}), 3*flushEvery
	f := &fake{objects: func(yield func(Object, error) bool) {
		for i := range total {
			if i == total-1 {
				select {
				case <-arrived:
				case <-t.Context().Done():
					return
				}
			}
			if !yield(Object{Stream: "pods", Namespace: "shop", Name: fmt.Sprintf("web-%d", i), UID: "u", ResourceVersion: "7", Sinks: []string{"out"}}, nil) {
				return
			}
		}
	}}
	client, n := listen(t, f), 0
	for object, err := range client.Inventory(t.Context(), Query{Resource: "pods", UID: "u", Namespace: "a&b"}) {
		must(t, err)
		if want := (Object{"pods", "shop", fmt.Sprintf("web-%d", n), "u", "7", []string{"out"}}); !reflect.DeepEqual(object, want) {
			t.Fatalf("got %+v, want %+v", object, want)
		}
		if n++; n == 1 {
			close(arrived)
		}
	}
	if n != total {
		t.Errorf("%d objects, want %d", n, total)
	}
	if want := (Query{Resource: "pods", UID: "u", Namespace: "a&b"}); f.query != want {
		t.Errorf("asked for %+v, want %+v", f.query, want)
	}
}

// TestInventoryThatIsCutShortIsAnError wherever it is cut: half an answer must not look whole.
func TestInventoryThatIsCutShortIsAnError(t *testing.T) {
	for name, end := range map[string]error{"damage": errors.New("damaged"), "crash": http.ErrAbortHandler} {
		t.Run(name, func(t *testing.T) {
			client := listen(t, &fake{objects: func(yield func(Object, error) bool) {
				for range 2 * flushEvery {
					yield(Object{Name: "web"}, nil)
				}
				if name == "crash" {
					panic(end)
				}
				yield(Object{}, end)
			}})
			var last error
			for _, err := range client.Inventory(t.Context(), Query{}) {
				last = err
			}
			if last == nil || name == "damage" && !strings.HasSuffix(last.Error(), ": damaged") {
				t.Errorf("error %v", last)
			}
		})
	}
}

// TestWaitEndsWhenNothingOfTheSnapshotIsOwed and /statusz, which is a moment later, shows its comparison.
func TestWaitEndsWhenNothingOfTheSnapshotIsOwed(t *testing.T) {
	began := time.Now()
	mine := &Snapshot{Streams: []string{"pods"}, Sinks: []string{"out"}, Time: began}
	asked, looked := 0, 0
	mux := http.NewServeMux()
	mux.Handle("/", owing(func() *OwedList {
		asked++
		return &OwedList{Owed: [][]Owed{
			{{Sink: "out", Stream: "pods", Reason: "requested"}, {Sink: "bus", Stream: "pods", Reason: "requested"}},
			{{Sink: "bus", Stream: "pods", Reason: "requested"}, {Sink: "out", Stream: "nodes", Reason: "requested"}, {Sink: "out", Stream: "pods", Reason: "resync"}},
		}[min(asked-1, 1)]}
	}))
	mux.HandleFunc("/statusz", func(w http.ResponseWriter, _ *http.Request) {
		looked++
		at := began.Add(time.Duration(looked-2) * time.Minute).Format(time.RFC3339Nano)
		fmt.Fprintf(w, `{"streams":{"pods":{"lastSnapshot":{"reason":"requested","resourceVersion":"%d","synced":3,"replaced":1,"time":%q}},"nodes":{}}}`, looked, at)
	})
	got, err := asking(t, mux, token.text).Wait(t.Context(), mine)
	pods := got["pods"]
	pods.Time = time.Time{}
	want := LastSnapshot{Reason: change.Requested, ResourceVersion: "2", Counts: change.Counts{Synced: 3, Replaced: 1}}
	if err != nil || asked != 3 || looked != 2 || len(got) != 1 || pods != want {
		t.Errorf("after %d and %d questions %+v, %v", asked, looked, got, err)
	}
}

// TestWhoWaitsForASnapshotThatIsStoppedIsTold: it must not look complete. One that was stopped before is another one.
func TestWhoWaitsForASnapshotThatIsStoppedIsTold(t *testing.T) {
	mine := &Snapshot{Streams: []string{"pods"}, Sinks: []string{"out"}, Time: time.Now()}
	stopped := Stopped{Owed: Owed{ID: "7mare7x", Sink: "out", Stream: "pods", Reason: "requested"}, Time: mine.Time.Add(-time.Second)}
	asked := 0
	handler := owing(func() *OwedList {
		if asked++; asked == 2 {
			stopped.Time = mine.Time.Add(time.Second)
			return &OwedList{Stopped: []Stopped{stopped}}
		}
		return &OwedList{Owed: []Owed{stopped.Owed}, Stopped: []Stopped{stopped}}
	})
	_, err := asking(t, handler, token.text).Wait(t.Context(), mine)
	if want := "the snapshot 7mare7x of pods for sink out was stopped: its sink may have a part of it"; err == nil || err.Error() != want || asked != 2 {
		t.Errorf("after %d questions: error %v, want %s", asked, err, want)
	}
}

// owing serves what is owed.
func owing(list func() *OwedList) http.Handler {
	return Handler(Questions{"GET /snapshot": Shown(func() (*OwedList, error) { return list(), nil })}, nil, token)
}

func TestServersAreNamedByAddress(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1:8080": "http://127.0.0.1:8080", "http://localhost:8080/": "http://localhost:8080", "127.0.0.1:8080": "http://127.0.0.1:8080",
		":8080": "http://127.0.0.1:8080", "[::1]:8080": "http://[::1]:8080",
	} {
		client, err := NewClient(text, "")
		if err != nil || client.base != want {
			t.Errorf("%s: %+v, %v", text, client, err)
		}
	}
	for _, text := range []string{"", "https://h", "http://", "http://u:p@h", "http://h/path", "http://h?a=b", "h:p:q", "http://h:x"} {
		if client, err := NewClient(text, ""); err == nil {
			t.Errorf("%s is taken for %s", text, client.base)
		}
	}
}

func TestWhatIsNoExporterIsSaid(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	client, err := NewClient(server.URL, token.text)
	must(t, err)
	_, err = client.Checkpoint(t.Context())
	if want := "ask the exporter at " + server.URL + ": it answers 404 Not Found: check that an exporter of this version listens there"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	server.Close()
	_, err = client.Checkpoint(t.Context())
	if want := "ask the exporter at " + server.URL + ": connection refused: check that it runs and listens there"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
