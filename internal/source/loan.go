package source

import "github.com/kubecdc/kubecdc/internal/change"

// loan is the object of a frame that goes in line, in memory that the next frame is read into. Rules mostly make
// another object of it; to copy it before them would take twice the memory of what is in line. The zero value is none.
type loan struct {
	object []byte
	keep   func([]byte) []byte
}

// shaped gives the record memory of its own if rules have left it the lent one.
func (l *loan) shaped(rec *change.Record) {
	if len(l.object) > 0 && len(rec.Object) > 0 && &rec.Object[0] == &l.object[0] {
		rec.Object = l.keep(rec.Object)
	}
}

// lend notes that the record's object is lent, where the stream's are. The record is read by then.
func (d *decoder) lend(rec *change.Record) {
	if d.stream.Shape != nil {
		d.stream.loan = loan{rec.Object, d.frames.Keep}
	}
}

// repay is before the next frame is read: nothing may have the lent object any more.
func (d *decoder) repay() {
	s := d.stream
	if s.Shape != nil {
		s.loan = loan{}
		s.cursor.seen.settle()
	}
}
