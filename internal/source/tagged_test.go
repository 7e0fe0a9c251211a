package source

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/third_party/forked/httpcache"
)

// TestI6OnlyAnswersWithATagAreKept: the pages of a list come under new URLs each time.
func TestI6OnlyAnswersWithATagAreKept(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/apis" {
			w.Header().Set("ETag", `"1"`)
		}
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, r.URL.Path)
	}))
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	cache := httpcache.NewMemoryCache()
	client := http.Client{Transport: &httpcache.Transport{Transport: tagged{server.Client().Transport}, Cache: cache}}
	for range 2 {
		for path, isKept := range map[string]bool{"/apis": true, "/pods?continue=a": false} {
			answer, err := client.Get(server.URL + path)
			must(t, err)
			text, err := io.ReadAll(answer.Body)
			must(t, err)
			if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK || string(text) != path[:5] {
				t.Errorf("%s: %s %q (%v)", path, answer.Status, text, err)
			}
			if _, is := cache.Get(server.URL + path); is != isKept {
				t.Errorf("%s is kept: %t", path, is)
			}
		}
	}
}
