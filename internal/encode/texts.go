package encode

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// textBlock is how many bytes of texts share one allocation, at most. Who keeps one of them keeps them all.
const textBlock = 4 << 10

// texts are the strings of one message that are made for it: its id, its destination, values of its headers. They share
// one allocation with those of other messages.
type texts struct {
	bytes []byte
	id    int // the id's length; it comes first
	spans []span
	made  strings.Builder // what was made until now; only its last part is written to
}

// span is one text and whose it is.
type span struct{ start, end, place int }

// placeOfDestination stands for the destination; other places are indexes of the message's headers.
const placeOfDestination = -1

// begin starts with the id.
func (t *texts) begin(bytes []byte) { t.bytes, t.id, t.spans = bytes, len(bytes), t.spans[:0] }

// ID is valid until the next begin.
func (t *texts) ID() []byte { return t.bytes[:t.id] }

// put takes what was appended to bytes as the text of the place.
func (t *texts) put(place int, bytes []byte) {
	t.spans = append(t.spans, span{len(t.bytes), len(bytes), place})
	t.bytes = bytes
}

// share takes the id as the text of the place, too.
func (t *texts) share(place int) { t.spans = append(t.spans, span{0, t.id, place}) }

// end gives the message its texts.
func (t *texts) end(msg *sink.Message) {
	if t.made.Cap()-t.made.Len() < len(t.bytes) {
		t.made.Reset()
		t.made.Grow(max(textBlock, len(t.bytes)))
	}
	start := t.made.Len()
	t.made.Write(t.bytes)
	all := t.made.String()[start:]
	msg.ID = all[:t.id]
	for _, s := range t.spans {
		if s.place == placeOfDestination {
			msg.Destination = all[s.start:s.end]
		} else {
			msg.Headers[s.place].Value = all[s.start:s.end]
		}
	}
}

// namespace is the object's, or the stream's for a record that speaks of the stream.
func namespace(rec *change.Record) string {
	if rec.Key.Name != "" {
		return rec.Key.Namespace
	}
	return rec.Stream.Namespace
}

// finalState is the last state of an object that is gone, or where nobody saw it the last one that was delivered.
func finalState(rec *change.Record) []byte {
	if rec.Object == nil {
		return rec.Before
	}
	return rec.Object
}
