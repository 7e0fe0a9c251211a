package httpserver

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/kubecdc/kubecdc/internal/control"
)

// TestNobodyReadsTheStateAfterTheGateIsShut: the store is closed then.
func TestNobodyReadsTheStateAfterTheGateIsShut(t *testing.T) {
	entered, leave, shut := make(chan struct{}), make(chan struct{}), make(chan struct{})
	g := &gate{handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	})}
	request := func() int {
		recorder := httptest.NewRecorder()
		g.ServeHTTP(recorder, httptest.NewRequest("GET", "/inventory", nil))
		return recorder.Code
	}
	go request()
	<-entered
	go func() {
		defer close(shut)
		g.shut()
	}()
	for g.inside.TryRLock() { // until shut waits for those inside
		g.inside.RUnlock()
		select {
		case <-shut:
			t.Fatal("the gate is shut while somebody is inside")
		default:
			runtime.Gosched()
		}
	}
	close(leave)
	<-shut
	if code := request(); code != http.StatusServiceUnavailable {
		t.Errorf("a late request is answered with %d", code)
	}
}

// TestABranchAnswersOnlyWhileItIsServed below its path, and ends the answers that it owes.
func TestABranchAnswersOnlyWhileItIsServed(t *testing.T) {
	server := &Server{Address: "127.0.0.1:0", Token: control.NewToken(), Logger: slog.New(slog.DiscardHandler)}
	branch := server.Branch("/clusters/a", t.TempDir())
	stop, err := server.Serve(t.Context(), branch)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	defer stop()
	ask := func() (int, string) {
		answer, err := http.Get("http://" + server.listener.Addr().String() + "/clusters/a/page")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
