package source

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// revalidator keeps the last answer that a server has tagged, and asks whether it still holds instead of asking for it
// again (RFC 9110, If-None-Match). client-go does so for kubectl in files; this is the same in memory.
type revalidator struct {
	next http.RoundTripper

	mu   sync.Mutex // guards the following
	kept map[string]keptAnswer
}

type keptAnswer struct {
	header http.Header
	body   []byte
}

func newRevalidator(next http.RoundTripper) *revalidator {
	return &revalidator{next: next, kept: map[string]keptAnswer{}}
}

// WrappedRoundTripper is as of client-go's own, which looks through it for the connections.
func (r *revalidator) WrappedRoundTripper() http.RoundTripper { return r.next }

// RoundTrip is http.RoundTripper's.
func (r *revalidator) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		return r.next.RoundTrip(request)
	}
	key := request.URL.Path + " " + request.Header.Get("Accept")
	r.mu.Lock()
	known, found := r.kept[key]
	r.mu.Unlock()
	if found {
		request = request.Clone(request.Context())
		request.Header.Set("If-None-Match", known.header.Get("ETag"))
	}
	answer, err := r.next.RoundTrip(request)
	switch {
	case err != nil:
		return nil, err
	case found && answer.StatusCode == http.StatusNotModified:
		return known.again(answer)
	case answer.StatusCode == http.StatusOK && answer.Header.Get("ETag") != "":
		return r.keep(key, answer)
	}
	return answer, nil
}

// keep reads the answer whole: what was cut off is no answer, and is not kept.
func (r *revalidator) keep(key string, answer *http.Response) (*http.Response, error) {
	body, err := io.ReadAll(answer.Body)
	closeErr := answer.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", key, err)
	}
	if closeErr == nil {
		r.mu.Lock()
		r.kept[key] = keptAnswer{answer.Header.Clone(), body}
		r.mu.Unlock()
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// again makes the answer that is confirmed of the one that confirms it.
func (k keptAnswer) again(answer *http.Response) (*http.Response, error) {
	if err := answer.Body.Close(); err != nil {
		return nil, err
	}
	answer.StatusCode, answer.Status, answer.Header = http.StatusOK, "200 OK", k.header.Clone()
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(k.body)), int64(len(k.body))
	return answer, nil
}
