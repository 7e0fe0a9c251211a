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

// TestEveryRequestEndsThatStandsStill, at whatever place. One whose reader stands still goes on.
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
