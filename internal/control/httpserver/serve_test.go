package httpserver

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
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
