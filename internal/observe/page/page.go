package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

//go:embed assets
var assets embed.FS

// Register has the mux serve the page at /, its parts, and /events.
func (p *Page) Register(mux *http.ServeMux) {
	files, _ := fs.Sub(assets, "assets") // of a path that is valid it cannot fail
	parts := http.FileServerFS(files)
	for _, path := range []string{"/{$}", "/page.css", "/page.js"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			header := w.Header()
			header.Set("Content-Security-Policy", policy)
			header.Set("X-Content-Type-Options", "nosniff")
			header.Set("Referrer-Policy", "no-referrer")
			header.Set("Cache-Control", "no-cache")
			parts.ServeHTTP(w, r)
		})
	}
	mux.HandleFunc("GET /events", p.serveEvents)
}

// policy lets the page load its own parts and nothing else, and be in no other page (CSP Level 3).
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	// tick is how often a reader is told of changes; every fourth time, of the status.
	tick      = 250 * time.Millisecond
	perStatus = 4
	// writeTime is how long a reader may take to accept what it is sent, before it is dropped.
	writeTime = 5 * time.Second
	// shownFirst is how many changes a new reader is told of that were before it came.
	shownFirst = 50
)

// Changes is the data of the event "changes".
type Changes struct {
	// Missed is how many changes before these the reader was too slow for.
	Missed  uint64   `json:"missed,omitempty"`
	Changes []Change `json:"changes"`
}

// serveEvents writes server-sent events (HTML standard, 9.2) until the reader goes away, is too slow, or the exporter
// stops: "status" with the status, "changes" with Changes, and "private" with why there are no changes.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	private := p.options.Private(r)
	leave, why := p.readers.enter(r.RemoteAddr, private == "")
	if why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	defer leave()
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	reader := &reader{page: p, w: w, control: http.NewResponseController(w), private: private}
	if private != "" && reader.send("private", private) != nil {
		return
	}
	p.ring.mu.Lock()
	reader.seq = max(p.ring.last, shownFirst) - shownFirst
	p.ring.mu.Unlock()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if reader.tell(n%perStatus == 0) != nil {
			return // the reader went away, or is too slow
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

// reader is one connection to /events, and where it is in the ring.
type reader struct {
	page    *Page
	w       http.ResponseWriter
	control *http.ResponseController
	private string
	seq     uint64
}

// tell tells of the changes first: after the first status, a reader has heard of all that were before it.
func (r *reader) tell(status bool) error {
	if r.private == "" {
		changes, missed := r.page.ring.after(r.seq)
		if len(changes) > 0 {
			r.seq = changes[len(changes)-1].Seq
			if err := r.send("changes", Changes{Missed: missed, Changes: changes}); err != nil {
				return err
			}
		}
	}
	if !status {
		return nil
	}
	document, err := r.page.document()
	if err != nil {
		return err
	}
	return r.write("status", document)
}

func (r *reader) send(event string, data any) error {
	text, _ := json.Marshal(data) // of texts, numbers and times it cannot fail
	return r.write(event, text)
}

// write sends one event; its data have no newline.
func (r *reader) write(event string, data []byte) error {
	r.control.SetWriteDeadline(time.Now().Add(writeTime)) // where it fails, writing fails, too
	if _, err := fmt.Fprintf(r.w, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	return r.control.Flush()
}

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

// ringSize is how many changes are remembered.
const ringSize = 1024

// Change is one change as readers of /events get it: names and versions, never an object.
type Change struct {
	Seq             uint64        `json:"seq"` // from 1, one more each change
	Time            time.Time     `json:"time"`
	Op              string        `json:"op"`
	Resource        string        `json:"resource"`
	Namespace       string        `json:"namespace,omitempty"`
	Name            string        `json:"name,omitempty"`
	ResourceVersion string        `json:"resourceVersion,omitempty"`
	Reason          change.Reason `json:"reason,omitempty"`
}

// ring holds the last changes. Its slots keep their memory, and share none with records: those are gone when they are
// delivered.
type ring struct {
	mu    sync.Mutex // guards the following
	slots [ringSize]slot
	last  uint64 // the Seq given last
}

type slot struct {
	time   time.Time
	op     change.Op
	stream *change.Stream
	reason change.Reason
	text   []byte // namespace, name and version, with a zero byte between
}

func (r *ring) add(rec *change.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	s := &r.slots[r.last%ringSize]
	s.time, s.op, s.stream, s.reason = rec.Received, rec.Op, rec.Stream, ""
	if rec.Snapshot != nil {
		s.reason = rec.Snapshot.Reason
	}
	namespace := rec.Key.Namespace
	if rec.Key.Name == "" {
		namespace = rec.Stream.Namespace
	}
	s.text = append(append(s.text[:0], namespace...), 0)
	s.text = append(append(s.text, change.Shown(rec.Key.Name, change.MaxNamed)...), 0)
	s.text = append(s.text, rec.ResourceVersion...)
}

// after returns the changes after the Seq, oldest first, and how many are forgotten already.
func (r *ring) after(seq uint64) (changes []Change, missed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last > ringSize && seq < r.last-ringSize {
		missed = r.last - ringSize - seq
		seq += missed
	}
	for seq++; seq <= r.last; seq++ {
		s := &r.slots[seq%ringSize]
		part := bytes.SplitN(s.text, []byte{0}, 3)
		changes = append(changes, Change{
			Seq: seq, Time: s.time, Op: s.op.String(), Resource: s.stream.Resource.String(), Reason: s.reason,
			Namespace: string(part[0]), Name: string(part[1]), ResourceVersion: string(part[2]),
		})
	}
	return changes, missed
}

// maxReaders is how many there may be of this host, and of all others together, and perAddress of one of these.
const maxReaders, perAddress = 16, 4

// readers are the places of those who read /events: of this host, and of others, of whom none takes all.
type readers struct {
	mu  sync.Mutex // guards the following
	all int
	of  map[string]int // by address; "" is this host
}

// enter takes a place, or says why there is none.
func (r *readers) enter(remote string, here bool) (leave func(), why string) {
	from, _, err := net.SplitHostPort(remote)
	switch {
	case here:
		from = ""
	case err != nil:
		from = remote
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case here && r.of[""] >= maxReaders, !here && r.all-r.of[""] >= maxReaders:
		return nil, fmt.Sprintf("%d readers are connected already: close one", maxReaders)
	case !here && r.of[from] >= perAddress:
		return nil, fmt.Sprintf("%d readers of your address are connected already: close one", perAddress)
	case r.of == nil:
		r.of = map[string]int{}
	}
	r.all++
	r.of[from]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all--
		if r.of[from]--; r.of[from] == 0 {
			delete(r.of, from)
		}
	}, ""
}
