package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

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
	reader := &reader{page: p, w: w, control: http.NewResponseController(w)}
	if reader.private = private; reader.private != "" {
		if reader.send("private", reader.private) != nil {
			return
		}
	}
	if newest := p.ring.newest(); newest > shownFirst {
		reader.seq = newest - shownFirst
	}
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
	if err := r.tellChanges(); err != nil || !status {
		return err
	}
	document, err := r.page.document()
	if err != nil {
		return err
	}
	return r.write("status", document)
}

func (r *reader) tellChanges() error {
	if r.private != "" {
		return nil
	}
	changes, missed := r.page.ring.after(r.seq)
	if len(changes) == 0 {
		return nil
	}
	r.seq = changes[len(changes)-1].Seq
	return r.send("changes", Changes{Missed: missed, Changes: changes})
}

func (r *reader) send(event string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return r.write(event, text)
}

// write sends one event; its data have no newline.
func (r *reader) write(event string, data []byte) error {
	if err := r.control.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(r.w, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	return r.control.Flush()
}
