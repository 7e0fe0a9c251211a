package line

import (
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// resumePoint says which mark of one sink may be saved: where a crash would resume in its log. It is pure; the line's
// mu guards it. What the sink wrote is held back while anything may come again that lies before it, is released with
// the Seq after which nothing is left to save, and counts when all before that Seq is saved.
type resumePoint struct {
	held     heldMark
	compared uint64           // the highest Seq that may be in the log before the marks, or clears what is there
	released checkpoint.Marks // by Seq
	given    sink.Mark        // to the committer, last

	plain   sink.Mark // the newest mark given that carries nothing
	carries bool      // the given mark may carry ids
	carryAt uint64    // the Seq before which no mark carries anything again
	based   bool      // the log is compared with positions of its own until a mark is saved
}

// heldMark is the newest mark of a sink whose log still holds what comes again: it counts when that has passed.
type heldMark struct {
	seq  uint64
	mark sink.Mark // "" is none
}

// wrote notes records up to seq, and with a mark, that the log stands there after them.
func (p *resumePoint) wrote(seq uint64, mark sink.Mark) {
	if p.held.seq = max(p.held.seq, seq); mark != "" {
		p.held.mark = mark
	}
}

// compare notes that records up to seq are compared with the log.
func (p *resumePoint) compare(seq uint64) { p.compared = max(p.compared, seq) }

// release lets the held mark count.
func (p *resumePoint) release() {
	if p.held.mark == "" {
		return
	}
	p.released.Written(max(p.held.seq, p.compared), p.held.mark)
	p.held = heldMark{}
}

// next is the mark to save when everything before the frontier is saved, false where there is no other one than the
// last.
func (p *resumePoint) next(frontier uint64) (sink.Mark, bool) {
	mark, ok := p.released.At(frontier)
	return mark, ok && mark != p.given
}

// give notes that the mark is given to the committer.
func (p *resumePoint) give(mark sink.Mark) { p.given = mark }

// lags returns the newest mark, held or not, if it lags so far that it may go on and carry what keeps it back.
func (p *resumePoint) lags(most uint64) (seq uint64, mark sink.Mark, ok bool) {
	seq, mark, ok = p.released.Newest()
	if p.held.mark != "" {
		seq, mark = max(p.held.seq, p.compared, seq), p.held.mark
	}
	return seq, mark, ok && mark != p.given && p.released.Lag(seq) >= most && seq >= p.carryAt
}

// carried notes that the mark goes on and carries ids.
func (p *resumePoint) carried(seq uint64, mark sink.Mark) {
	p.carries, p.released = true, checkpoint.Marks{}
	p.released.Written(seq, mark)
}

// rewind makes the mark the one to go on from; plain is the newest one that carries nothing.
func (p *resumePoint) rewind(mark, plain sink.Mark) {
	p.plain, p.given, p.held, p.carries = plain, mark, heldMark{}, true // perhaps
	p.released = checkpoint.Marks{}
	p.released.Written(0, mark)
}

// leave forgets what the sink wrote since the saved mark.
func (p *resumePoint) leave(saved sink.Mark) {
	p.released, p.held, p.given, p.compared = checkpoint.Marks{}, heldMark{}, saved, 0
}
