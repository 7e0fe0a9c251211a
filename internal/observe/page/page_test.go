package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/change"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pods() *change.Stream {
	return &change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

func record(i int) *change.Record {
	return &change.Record{
		Stream: pods(), Op: change.Updated, Key: change.Key{Namespace: "shop", Name: fmt.Sprint("pod-", i)}, ResourceVersion: fmt.Sprint(i),
		Object: []byte(`{"spec":"SECRET"}`), Received: time.UnixMilli(int64(i)),
	}
}

// start serves a page; private is what the page keeps from its readers.
func start(t *testing.T, private string) (*Page, *httptest.Server) {
	t.Helper()
	p := New(Options{Status: func() any { return map[string]bool{"ready": true} }, Queues: map[string]int{"bus": 64}, Records: map[string]int{"bus": 8}, Private: func(*http.Request) string { return private }})
	mux := http.NewServeMux()
	p.Register(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return p, server
}

func open(t *testing.T, url string) (*bufio.Reader, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	return bufio.NewReader(answer.Body), func() {
		cancel()
		answer.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	}
}

// next returns the data of the next event of the name.
func next(t *testing.T, r *bufio.Reader, name string) string {
	t.Helper()
	for found := false; ; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("wait for event %s: %v", name, err)
		}
		if data, isData := strings.CutPrefix(line, "data: "); isData && found {
			return strings.TrimSpace(data)
		}
		found = found && line != "\n" || line == "event: "+name+"\n"
	}
}

func TestI9EventsHaveNamesAndNoObjects(t *testing.T) {
	p, server := start(t, "")
	for i := range 3 {
		p.Received(record(i))
	}
	p.Received(&change.Record{Stream: pods(), Op: change.Bookmark})
	p.Received(&change.Record{Stream: pods(), Op: change.Updated, Filtered: true})
	r, stop := open(t, server.URL)
	defer stop()
	text := next(t, r, "changes")
	var told Changes
	must(t, json.Unmarshal([]byte(text), &told))
	if len(told.Changes) != 3 || told.Changes[2].Name != "pod-2" || told.Changes[2].Namespace != "shop" || told.Changes[2].ResourceVersion != "2" || told.Missed != 0 {
		t.Errorf("the changes are %s", text)
	}
	if strings.Contains(text, "SECRET") {
		t.Errorf("an object is in %s", text)
	}
	if got, want := next(t, r, "status"), `{"queues":{"bus":64},"records":{"bus":8},"status":{"ready":true}}`; got != want {
		t.Errorf("the status is %s, want %s", got, want)
	}
	p.Received(record(7))
	if text := next(t, r, "changes"); !strings.Contains(text, `"name":"pod-7"`) || strings.Contains(text, "pod-2") {
		t.Errorf("the next changes are %s", text)
	}
}

func TestI9NamesStayOnTheHost(t *testing.T) {
	p, server := start(t, "not you")
	p.Received(record(1))
	r, stop := open(t, server.URL)
	defer stop()
	if got := next(t, r, "private"); got != `"not you"` {
		t.Errorf("the reader is told %s", got)
	}
	for range 2 {
		if line := next(t, r, "status"); strings.Contains(line, "pod-1") {
			t.Errorf("a name is in %s", line)
		}
	}
}

// TestI6ASlowReaderHoldsUpNobody: a reader that reads nothing costs nothing but its place, and hears what it missed.
func TestI6ASlowReaderHoldsUpNobody(t *testing.T) {
	var r ring
	for i := range ringSize + 500 {
		r.add(record(i))
	}
	changes, missed := r.after(100)
	if missed != 400 || len(changes) != ringSize || changes[0].Seq != 501 || changes[0].Name != "pod-500" {
		t.Errorf("missed %d, and %d changes from %+v", missed, len(changes), changes[0])
	}
	if changes, missed = r.after(r.last); len(changes) != 0 || missed != 0 {
		t.Errorf("%d changes behind the newest, %d missed", len(changes), missed)
	}
	rec := record(1)
	if n := testing.AllocsPerRun(2*ringSize, func() { r.add(rec) }); n != 0 {
		t.Errorf("%v allocations a record", n)
	}
}

// TestI6NoNameTakesMuchMemory: names of some kinds are bounded by etcd alone, and as many are kept as there are slots.
func TestI6NoNameTakesMuchMemory(t *testing.T) {
	var r ring
	rec := record(1)
	rec.Key.Name = strings.Repeat("n", 300_000)
	r.add(rec)
	changes, _ := r.after(0)
	if c := changes[0]; len(c.Name) > change.MaxNamed || !strings.Contains(c.Name, "nnn...%sha256-") || c.ResourceVersion != "1" {
		t.Errorf("a reader is told a name of %d bytes, %.100s", len(c.Name), c.Name)
	}
	if kept := cap(r.slots[1].text); kept > 2*change.MaxNamed {
		t.Errorf("%d bytes are kept", kept)
	}
}

// TestI6OneAddressLeavesPlacesToOthers, and other hosts to this one.
func TestI6OneAddressLeavesPlacesToOthers(t *testing.T) {
	p, server := start(t, "")
	r := &p.readers
	enter := func(from string, here bool) func() {
		leave, why := r.enter(from, here)
		if (leave == nil) != (why != "") {
			t.Fatalf("%s is let in and told %q", from, why)
		}
		return leave
	}
	var leave []func()
	for host := range 4 {
		for port := range perAddress {
			leave = append(leave, enter(fmt.Sprintf("10.0.0.%d:%d", host, port), false))
		}
		if enter(fmt.Sprintf("10.0.0.%d:99", host), false) != nil {
			t.Errorf("host %d has more than %d places", host, perAddress)
		}
	}
	if enter("10.0.0.9:1", false) != nil {
		t.Errorf("others have more than %d places", maxReaders)
	}
	for port := range maxReaders {
		leave = append(leave, enter(fmt.Sprintf("127.0.0.1:%d", port), true))
	}
	if enter("127.0.0.1:99", true) != nil {
		t.Errorf("this host has more than %d places", maxReaders)
	}
	answer, err := http.Get(server.URL + "/events")
	must(t, err)
	if answer.Body.Close(); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more reader is answered %s", answer.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	for _, one := range leave {
		if one == nil {
			t.Fatal("a place was refused")
		}
		one()
	}
	if n := r.count(); n != 0 || len(r.of) != 0 {
		t.Errorf("%d are counted when all are gone, of %v", n, r.of)
	}
}

// runbooks is where links lead to; nothing is loaded from there.
const runbooks = "https://github.com/kubecdc/kubecdc/blob/main/docs/operating.md#"

func TestThePageLoadsNothingFromElsewhere(t *testing.T) {
	_, server := start(t, "")
	for _, path := range []string{"/", "/page.css", "/page.js"} {
		answer, err := http.Get(server.URL + path)
		must(t, err)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("get %s: %s, %v", path, answer.Status, err)
		}
		for _, foreign := range []string{"//", "@import", "innerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=", "onclick"} {
			allowed := strings.NewReplacer("http://www.w3.org/2000/svg", "", runbooks, "").Replace(string(text))
			if strings.Contains(allowed, foreign) && !(foreign == "//" && !strings.Contains(allowed, "://")) {
				t.Errorf("%s has %q", path, foreign)
			}
		}
		if got := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';") {
			t.Errorf("%s has the policy %q", path, got)
		}
	}
}

// TestI6AReaderThatReadsNothingIsDropped once its connection takes no more.
func TestI6AReaderThatReadsNothingIsDropped(t *testing.T) {
	p := New(Options{Status: func() any { return strings.Repeat("x", 32<<20) }, Private: func(*http.Request) string { return "" }})
	mux := http.NewServeMux()
	p.Register(mux)
	server := httptest.NewServer(mux)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	must(t, err)
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	await := func(what string, n int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for p.readers.count() != n {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				t.Fatalf("the reader is not %s", what)
			}
		}
	}
	await("there", 1)
	await("dropped", 0)
}

func (r *readers) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
