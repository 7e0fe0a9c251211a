package telemetry

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves /metrics, /healthz, /readyz and /statusz.
func (t shown) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", t.serveHealth)
	mux.HandleFunc("GET /readyz", t.serveReady)
	mux.HandleFunc("GET /statusz", t.serveStatus)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return // the reader is gone
		}
		mux.ServeHTTP(w, r)
	})
}

// answerTime is how long a reader may take for an answer: one that stands still would keep it in memory.
const answerTime = 30 * time.Second

func (t shown) serveHealth(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	problems := t.states.unhealthy(time.Now())
	t.mu.Unlock()
	answer(w, problems)
}

func (t shown) serveReady(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	checks := t.checks()
	t.mu.Unlock()
	waiting := unready(checks)
	if !r.URL.Query().Has("verbose") {
		answer(w, waiting)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if len(waiting) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	w.Write([]byte(verbose(checks)))
}

// answer says ok, or 503 and one problem a line.
func answer(w http.ResponseWriter, problems []string) {
	if len(problems) > 0 {
		http.Error(w, strings.Join(problems, "\n"), http.StatusServiceUnavailable)
		return
	}
	w.Write([]byte("ok\n"))
}

func (t shown) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.Encode(t.Status()) // a reader that went away is no error of ours
}
