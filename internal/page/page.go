package page

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Options says what the page shows.
type Options struct {
	// Status is the document of /statusz. It is asked once a second while somebody looks.
	Status func() any
	// Queues are the sinks with the bytes that their queues take.
	Queues map[string]int
	// Records are the sinks with the records that their queues take.
	Records map[string]int
	// Spools are those sinks that spool, with the bytes that they may have on disk.
	Spools map[string]int64
	// Private says why the request is not told the names of objects, "" where it is.
	Private func(r *http.Request) string
}

// Page is the page and its events. Its methods may be called from any goroutine.
type Page struct {
	options Options
	ring    ring
	readers readers

	mu     sync.Mutex // guards the following
	status []byte
	asked  time.Time
}

// New returns a page that has seen no change yet.
func New(options Options) *Page { return &Page{options: options} }

// Received is told of a record. It copies a few names, and never waits for a reader.
func (p *Page) Received(rec *change.Record) {
	if !rec.Filtered && rec.Op != change.Bookmark {
		p.ring.add(rec)
	}
}

// statusAge is how old the document may be: several readers share it.
const statusAge = 900 * time.Millisecond

// document is the status as JSON on one line.
func (p *Page) document() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) < statusAge {
		return p.status, nil
	}
	text, err := json.Marshal(struct {
		Queues  map[string]int   `json:"queues"`
		Records map[string]int   `json:"records,omitempty"`
		Spools  map[string]int64 `json:"spools,omitempty"`
		Status  any              `json:"status"`
	}{p.options.Queues, p.options.Records, p.options.Spools, p.options.Status()})
	if err == nil {
		p.status, p.asked = text, time.Now()
	}
	return text, err
}
