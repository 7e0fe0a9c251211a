package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// stillBody gives some bytes, and then nothing until the request is over.
type stillBody struct {
	io.Reader
	ctx context.Context
}

func (b *stillBody) Read(p []byte) (int, error) {
	if n, err := b.Reader.Read(p); err == nil {
		return n, nil
	}
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (b *stillBody) Close() error { return nil }

// TestEveryRequestEndsThatStandsStill, at whatever place, also where a credential plugin heeds no deadline. One whose
// reader stands still goes on.
func TestEveryRequestEndsThatStandsStill(t *testing.T) {
	half := func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: &stillBody{strings.NewReader("half"), r.Context()}}, nil
	}
	for name, c := range map[string]struct {
		next  roundTrip
		query string
		pause time.Duration // of the reader
		want  time.Duration // until the end
	}{
		"a question without an answer": {func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }, "", 0, stillTime},
		"half a list":                  {half, "?limit=500", 0, stillTime},
		"a silent watch":               {half, "?watch=true&timeoutSeconds=300", 0, 300*time.Second + endTime},
		"a reader that pauses":         {half, "?limit=500", time.Hour, time.Hour + stillTime},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &guard{next: c.next}
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/api/v1/pods"+c.query, nil)
				must(t, err)
				began := time.Now()
				answer, err := g.RoundTrip(request)
				if err == nil {
					time.Sleep(c.pause)
					var text []byte
					text, err = io.ReadAll(answer.Body)
					answer.Body.Close()
					if !bytes.Equal(text, []byte("half")) {
						t.Errorf("read %q", text)
					}
				}
				if _, stalled := errors.AsType[*StalledError](err); !stalled || !IsUnreachable(err) || time.Since(began) != c.want {
					t.Errorf("after %s, want %s: %v", time.Since(began), c.want, err)
				}
			})
		})
	}
}

// TestI6ACredentialPluginThatHangsIsLeftBehind: nobody waits for it for longer than for a server, and however long it
// hangs, no more than a bounded number of requests do.
func TestI6ACredentialPluginThatHangsIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		asked := make(chan struct{}, 10)
		next := roundTrip(func(*http.Request) (*http.Response, error) {
			asked <- struct{}{}
			<-hangs
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok"))}, nil
		})
		g := &guard{next: next, plugin: "login", calls: make(chan struct{}, 2)}
		ask := func() error {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/livez", nil)
			must(t, err)
			answer, err := g.RoundTrip(request)
			if err == nil {
				answer.Body.Close()
			}
			return err
		}
		for range 5 {
			if err := ask(); err == nil || !strings.Contains(err.Error(), "credential plugin login") {
				t.Errorf("%v, want that the plugin has sent nothing", err)
			}
		}
		if len(asked) != 2 {
			t.Errorf("%d requests hang, want 2", len(asked))
		}
		close(hangs)
		synctest.Wait()
		if err := ask(); err != nil {
			t.Error(err)
		}
	})
}
