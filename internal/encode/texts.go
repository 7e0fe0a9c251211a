package encode

import "github.com/kubecdc/kubecdc/internal/sink"

// texts are the strings of one message that are made for it: its id, its destination, values of its headers. They share
// one allocation.
type texts struct {
	bytes []byte
	id    int // the id's length; it comes first
	spans []span
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
	all := string(t.bytes)
	msg.ID = all[:t.id]
	for _, s := range t.spans {
		if s.place == placeOfDestination {
			msg.Destination = all[s.start:s.end]
		} else {
			msg.Headers[s.place].Value = all[s.start:s.end]
		}
	}
}
