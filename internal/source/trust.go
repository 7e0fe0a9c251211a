package source

import (
	"sync/atomic"
	"time"
)

// trust is what a server's answers are worth after the end of a watch, and after a failure: another one may answer
// from then on. It is for any goroutine. The zero value trusts.
type trust struct {
	suspect atomic.Bool               // something failed since the proof was asked for
	since   atomic.Pointer[time.Time] // answers to earlier questions say nothing; nil before the first
}

// doubt notes that something failed: what the server said before may be that of another one.
func (t *trust) doubt() {
	t.suspect.Store(true)
	t.forgetAnswers()
}

// forgetAnswers makes the stream ask the server anew.
func (t *trust) forgetAnswers() {
	now := time.Now()
	t.since.Store(&now)
}

// asked is since when questions to the server must have been asked to say something about the next watch: the end of
// the last one, and of the last failure.
func (t *trust) asked() time.Time {
	if since := t.since.Load(); since != nil {
		return *since
	}
	return time.Time{}
}
