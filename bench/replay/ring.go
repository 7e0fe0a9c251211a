package replay

import (
	"fmt"
	"io"
	"strings"
)

const (
	// firstVersion is the resourceVersion of the list. All that follow have as many digits, so that frames of all
	// versions are of one length.
	firstVersion = 1_000_000_000
	// names is how many objects change in turn.
	names = 512
	// burst is how many frames are written at once: a server that is ahead of its client writes more than one, too.
	burst = 16
)

// ring is a turn of all objects, rendered, one frame a line and all of one length. To send it is to write versions
// into it and hand it out, so that the server is never the slower party.
type ring struct {
	text   []byte
	length int // of one frame
	places []int
}

// newRing renders the object template as MODIFIED frames.
func newRing(template string) (*ring, error) {
	before, after, found := strings.Cut(template, "__RV__")
	if !found {
		return nil, fmt.Errorf("render frames: the template has no __RV__")
	}
	r := &ring{}
	after = strings.TrimRight(after, "\n")
	for i := range names {
		fill := strings.NewReplacer(
			"__NAME__", fmt.Sprintf("web-7d4b9c6f5-%05d", i),
			"__UID__", fmt.Sprintf("3f1c2b7a-0d4e-4a52-9c11-%012d", i),
		)
		r.text = append(r.text, `{"type":"MODIFIED","object":`+fill.Replace(before)...)
		r.places = append(r.places, len(r.text))
		r.text = fmt.Appendf(r.text, "%d%s}\n", firstVersion, fill.Replace(after))
	}
	r.length = len(r.text) / names
	return r, nil
}

// clone is a ring of its own for one watch.
func (r *ring) clone() *ring {
	own := *r
	own.text = append([]byte(nil), r.text...)
	return &own
}

// send writes the frames of the versions after from, up to and with to.
func (r *ring) send(w io.Writer, from, to int) error {
	for at := from - firstVersion; from < to; {
		first := at % names
		n := min(burst, names-first, to-from)
		for i := range n {
			r.stamp(first+i, from+1+i)
		}
		if _, err := w.Write(r.text[first*r.length : (first+n)*r.length]); err != nil {
			return err
		}
		at += n
		from += n
	}
	return nil
}

// stamp writes the version into the frame.
func (r *ring) stamp(frame, version int) {
	const digits = 10 // of firstVersion
	place := r.text[r.places[frame]:][:digits]
	for i := digits - 1; i >= 0; i-- {
		place[i] = byte('0' + version%10)
		version /= 10
	}
}
