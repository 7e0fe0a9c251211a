package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestNobodyReadsTheStateAfterTheGateIsShut: the store is closed then.
func TestNobodyReadsTheStateAfterTheGateIsShut(t *testing.T) {
	entered, leave, shut := make(chan struct{}), make(chan struct{}), make(chan struct{})
	left := false
	g := &gate{handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
		left = true
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
		if !left {
			t.Error("the gate is shut while somebody is inside")
		}
	}()
	close(leave)
	<-shut
	if code := request(); code != http.StatusServiceUnavailable {
		t.Errorf("a late request is answered with %d", code)
	}
}
