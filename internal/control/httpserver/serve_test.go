package httpserver

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
)

// TestNobodyReadsTheStateAfterARun: the store is closed then.
func TestNobodyReadsTheStateAfterARun(t *testing.T) {
	entered, leave, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	b := (&Server{}).Branch("/task", "")
	stop, err := b.Serve(t.Context(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	must(t, err)
	request := func() int {
		recorder := httptest.NewRecorder()
		b.ServeHTTP(recorder, httptest.NewRequest("GET", "/task/inventory", nil))
		return recorder.Code
	}
	go request()
	<-entered
	go func() {
		defer close(over)
		stop()
	}()
	for b.inside.TryRLock() { // until stop waits for those inside
		b.inside.RUnlock()
		select {
		case <-over:
			t.Fatal("the run is over while somebody is inside")
		default:
			runtime.Gosched()
		}
	}
	close(leave)
	<-over
	if code := request(); code != http.StatusServiceUnavailable {
		t.Errorf("a late request is answered with %d", code)
	}
}

// TestABranchAnswersOnlyWhileItIsServed below its path, and ends the answers that it owes.
func TestABranchAnswersOnlyWhileItIsServed(t *testing.T) {
	server := &Server{Address: "127.0.0.1:0", Token: control.NewToken(), Logger: slog.New(slog.DiscardHandler)}
	branch := server.Branch("/clusters/a", t.TempDir())
	stop, err := server.Serve(t.Context(), branch)
	must(t, err)
	defer server.Close()
	defer stop()
	ask := func() (int, string) {
		answer, err := http.Get("http://" + server.opened + "/clusters/a/page")
		must(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		must(t, err)
		return answer.StatusCode, string(text)
	}
	if code, text := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("nobody answers %d, %s", code, text)
	}
	asked := make(chan struct{})
	leave, err := branch.Serve(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		io.WriteString(w, r.URL.Path)
	}))
	must(t, err)
	go func() {
		<-asked
		leave()
	}()
	if code, text := ask(); code != http.StatusOK || text != "/page" {
		t.Errorf("the branch answers %d, %s", code, text)
	}
	if code, text := ask(); code != http.StatusServiceUnavailable {
		t.Errorf("nobody answers %d, %s any more", code, text)
	}
}

// TestWhoComesBetweenTwoRunsWaits, and who does not read holds up no end of a run.
func TestWhoComesBetweenTwoRunsWaits(t *testing.T) {
	server := &Server{Address: "127.0.0.1:0", Token: control.NewToken(), Logger: slog.New(slog.DiscardHandler)}
	defer server.Close()
	full := make(chan struct{})
	stop, err := server.Serve(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(full)
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	must(t, err)
	still, err := net.Dial("tcp", server.opened)
	must(t, err)
	defer still.Close()
	io.WriteString(still, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-full
	stop()
	code := make(chan int)
	go func() {
		answer, err := http.Get("http://" + server.opened)
		if err != nil {
			code <- 0
			return
		}
		answer.Body.Close()
		code <- answer.StatusCode
	}()
	select {
	case early := <-code:
		t.Errorf("who came between two runs got %d", early)
	case <-time.After(4 * waiting):
	}
	if stop, err = server.Serve(t.Context(), http.NotFoundHandler()); err != nil {
		t.Fatal(err)
	}
	defer stop()
	if got := <-code; got != http.StatusNotFound {
		t.Errorf("the next run answers %d", got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
