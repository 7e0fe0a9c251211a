package replay

import (
	"bytes"
	"io"
	"strconv"
)

// burst is how many frames are written at once: a server that is ahead of its client writes more than one, too.
const burst = 16

// ring is a turn of all objects that change, rendered, one frame a line and all of one length. To send it is to write
// versions into it and hand it out, so that the server is never the slower party.
type ring struct {
	text   []byte
	names  int
	length int // of one frame
	place  int // of the version in a frame
	first  int // the version before the first frame
}

// newRing renders the objects as MODIFIED frames.
func newRing(w World, object *template) *ring {
	r := &ring{names: w.names(), first: w.firstVersion()}
	for i := range r.names {
		r.text = append(r.text, `{"type":"MODIFIED","object":`...)
		r.text = append(object.append(r.text, i, r.first), '}', '\n')
	}
	r.length = len(r.text) / r.names
	r.place = bytes.Index(r.text, []byte(strconv.Itoa(r.first)))
	return r
}

// clone is a ring of its own for one watch.
func (r *ring) clone() *ring {
	own := *r
	own.text = bytes.Clone(r.text)
	return &own
}

// send writes the frames of the versions after from, up to and with to.
func (r *ring) send(w io.Writer, from, to int) error {
	for from < to {
		first := (from - r.first) % r.names
		n := min(burst, r.names-first, to-from)
		for i := range n {
			r.stamp(first+i, from+1+i)
		}
		if _, err := w.Write(r.text[first*r.length : (first+n)*r.length]); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// stamp writes the version into the frame.
func (r *ring) stamp(frame, version int) {
	place := frame*r.length + r.place
	appendNumber(r.text[place:place], version, versionDigits)
}
