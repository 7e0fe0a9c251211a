package replay

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// pace is how often a watch with a rate is sent what is due.
const pace = 10 * time.Millisecond

// burst is how many frames are written at once: a server that is ahead of its client writes more than one, too.
const burst = 16

// watch sends the events after the version that the client asks for, and keeps the stream open until the client closes
// it. A client without a version is sent all.
func (s *session) watch(w http.ResponseWriter, r *http.Request, res *resource) {
	query := r.URL.Query()
	from, _ := strconv.Atoi(query.Get("resourceVersion")) // none is the oldest
	out := &watcher{
		session: s, resource: res, done: r.Context().Done(), w: w, number: s.count(1),
		flush: http.NewResponseController(w).Flush, at: max(from, s.world.firstVersion()),
	}
	out.render()
	if query.Has("sendInitialEvents") { // there are none
		out.bookmark(`"annotations":{"k8s.io/initial-events-end":"true"},`)
	}
	if out.flush() != nil {
		return // the client is gone
	}
	select {
	case <-s.released:
	case <-out.done:
		return
	}
	if out.events() == nil {
		out.bookmarks()
	}
}

// watcher is one watch on its way.
type watcher struct {
	*session
	*resource
	number int // of the watch in its world
	at     int // the version that was sent last
	w      http.ResponseWriter
	flush  func() error
	done   <-chan struct{}

	// frames is a turn of all objects that change, rendered, one frame a line and all of one length. To send it is to
	// write versions into it and hand it out, so that the server is never the slower party.
	frames []byte
	length int // of one frame
	place  int // of the version in a frame
}

// render makes the frames.
func (o *watcher) render() {
	first, names := o.world.firstVersion(), o.world.names()
	for i := range names {
		o.frames = append(o.frames, `{"type":"MODIFIED","object":`...)
		o.frames = append(o.object.append(o.frames, i, first), '}', '\n')
	}
	o.length = len(o.frames) / names
	o.place = bytes.Index(o.frames, []byte(strconv.Itoa(first)))
}

// events sends what the world has, at its rate.
func (o *watcher) events() error {
	last := o.world.firstVersion() + o.world.Events
	if o.world.Rate == 0 {
		return o.send(last)
	}
	began, from := time.Now(), o.at
	for tick := time.NewTicker(pace); o.at < last; {
		due := from + int(time.Since(began).Seconds()*float64(o.world.Rate))
		if err := o.send(min(due, last)); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-o.done:
			return nil
		}
	}
	return nil
}

// send sends the events up to the version. The server has it before a client can know of it.
func (o *watcher) send(to int) error {
	if to <= o.at {
		return nil
	}
	o.advance(o.resource, to)
	for names := o.world.names(); o.at < to; {
		frame := (o.at - o.world.firstVersion()) % names
		n := min(burst, names-frame, to-o.at)
		text := o.frames[frame*o.length : (frame+n)*o.length]
		for i := range n {
			place := i*o.length + o.place
			appendNumber(text[place:place], o.at+1+i, versionDigits)
		}
		if _, err := o.w.Write(text); err != nil {
			return err
		}
		o.at += n
	}
	return o.flush()
}

// bookmarks tells now, and then as often as a real server, where the server stands. No two watches that follow each
// other are told in the same second.
func (o *watcher) bookmarks() {
	timer := time.NewTimer(bookmarkEvery / 60 * time.Duration(1+o.number%60))
	defer timer.Stop()
	for o.at = max(o.at, o.session.version(o.resource)); ; timer.Reset(bookmarkEvery) {
		o.bookmark("")
		if o.flush() != nil {
			return
		}
		select {
		case <-timer.C:
		case <-o.done:
			return
		}
	}
}

func (o *watcher) bookmark(annotations string) {
	apiVersion := o.resource.version
	if o.group != "" {
		apiVersion = o.group + "/" + apiVersion
	}
	fmt.Fprintf(o.w, `{"type":"BOOKMARK","object":{"kind":"%s","apiVersion":"%s","metadata":{%s"resourceVersion":"%d"},`+
		`"spec":{"containers":null},"status":{}}}`+"\n", o.kind, apiVersion, annotations, o.at)
}
