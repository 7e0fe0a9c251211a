package source

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// loan is the object of a frame that goes in line, in memory that the next frame is read into. Rules mostly make
// another object of it: to copy it before them would take twice the memory of what is in line, and half as much CPU
// time again (BenchmarkRules). The zero value is none.
type loan struct {
	object []byte
	frames *frame.Reader
}

// shaped gives the record memory of its own if rules have left it the lent one.
func (l *loan) shaped(rec *change.Record) {
	if len(l.object) > 0 && len(rec.Object) > 0 && &rec.Object[0] == &l.object[0] {
		rec.Object = l.frames.Keep(rec.Object)
	}
}
