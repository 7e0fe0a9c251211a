package sim2

import (
	"context"
	"io"
	"time"
)

// watchBody is the body of one watch. Frames are made when they are read, so a client that does not read holds nothing.
type watchBody struct {
	server *apiServer
	life   *life
	ctx    context.Context
	place
	stop chan struct{} // closed by Close

	// guarded by the world's lock
	sent     int // the newest revision that was sent
	pending  string
	frames   []string // those that follow
	ended    bool
	clean    bool // ended with whole frames
	bookmark bool // one was ordered
	cut      int  // counts frames down: the one that it reaches zero at breaks in its middle
	closed   bool
}

// end ends the watch after what is pending; the caller holds the world's lock.
func (b *watchBody) end(clean bool) { b.ended, b.clean = true, clean }

// Close is called by the client.
func (b *watchBody) Close() error {
	w := b.server.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.stop)
		delete(b.server.watches, b)
	}
	return nil
}

// Read waits for the next frame.
func (b *watchBody) Read(p []byte) (int, error) {
	for {
		if err := b.life.awake(); err != nil {
			return 0, err
		}
		n, changed, err := b.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-changed:
		case <-b.stop:
			return 0, io.ErrClosedPipe
		case <-b.ctx.Done():
			return 0, context.Cause(b.ctx)
		}
	}
}

// take reads what there is, or returns the channel to wait for.
func (b *watchBody) take(p []byte) (int, <-chan struct{}, error) {
	w := b.server.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.life.dead {
		return 0, nil, errDead
	}
	if b.pending == "" && !b.ended && !time.Now().Before(b.server.silent) {
		b.next()
		if b.pending != "" {
			if err := b.life.stepLocked("api"); err != nil {
				return 0, nil, err
			}
		}
	}
	n := copy(p, b.pending)
	b.pending = b.pending[n:]
	switch {
	case n > 0:
		return n, nil, nil
	case b.ended && b.clean:
		return 0, nil, io.EOF
	case b.ended:
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, b.server.changed, nil
}

// next makes the next frame pending, if there is one.
func (b *watchBody) next() {
	for len(b.frames) == 0 {
		batch := b.after()
		if len(batch) == 0 {
			b.mark()
			break
		}
		b.sent = batch[0].rev
		for i := range batch {
			b.queue(&batch[i])
		}
	}
	if len(b.frames) == 0 {
		return
	}
	b.pending, b.frames = b.frames[0], b.frames[1:]
	if b.cut > 0 {
		if b.cut--; b.cut == 0 {
			b.pending = b.pending[:len(b.pending)*2/3]
			b.end(false)
		}
	}
}

// queue makes the frames of one change: one, or none, or two where the server is at fault.
func (b *watchBody) queue(ev *event) {
	s := b.server
	if n := s.drop[b.resource]; n > 0 && ev.rev > s.shown[b.resource] {
		s.drop[b.resource]--
		s.lost[b.resource][ev.rev] = true
		s.unseen[ev.uid] = s.unseen[ev.uid] || ev.what == "ADDED"
	}
	if s.lost[b.resource][ev.rev] { // its watch cache never saw it, so no watch does
		b.life.noteLocked("api", "the server loses "+ev.what+" "+ev.key)
		return
	}
	s.shown[b.resource] = max(ev.rev, s.shown[b.resource])
	b.life.noteLocked("api", "sends "+ev.what+" "+ev.key+" "+versionJSON(ev.rev))
	b.frames = append(b.frames, frameJSON(ev, b.version))
	if n := s.duplicate[b.resource]; n > 0 {
		s.duplicate[b.resource]--
		b.frames = append(b.frames, frameJSON(ev, b.version))
	}
}

// mark sends a bookmark, if one was ordered and would tell something.
func (b *watchBody) mark() {
	s := b.server
	if !b.bookmark || b.resource != pods || s.etcd.rev <= b.sent {
		return
	}
	b.bookmark, b.sent = false, s.etcd.rev
	b.frames = append(b.frames, bookmarkJSON(b.resource, s.etcd.rev))
	b.life.noteLocked("api", "sends a bookmark at "+versionJSON(s.etcd.rev))
}

// after are the changes of the first revision after what was sent.
func (b *watchBody) after() []event {
	var batch []event
	for _, ev := range b.server.etcd.history {
		if !b.has(&ev) || ev.rev <= b.sent {
			continue
		}
		if len(batch) > 0 && ev.rev != batch[0].rev {
			break
		}
		batch = append(batch, ev)
	}
	return batch
}
