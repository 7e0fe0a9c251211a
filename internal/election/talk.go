package election

import "strings"

// The annotations with which a holder that reaches no broker asks whether another member does: an id, and the same id
// with the name of the one that does. They are hints, as the Lease is.
const (
	asks    = "kubecdc/who-can-write"
	answers = "kubecdc/can-write"
)

// put writes the holder's question into the annotations of its Lease, "" is none, and keeps an answer to that alone.
func put(annotations map[string]string, question string) {
	if id, _, _ := strings.Cut(annotations[answers], " "); id != question || question == "" {
		delete(annotations, answers)
	}
	if delete(annotations, asks); question != "" {
		annotations[asks] = question
	}
}

// talk is what the members ask each other.
type talk struct {
	ours   string // the question of this member, which holds the Lease; "" is none
	by     string // who answered it; "" is nobody yet
	theirs string // the question of the holder, which nobody has answered; "" is none
}

// read takes what the Lease says. isOurs says whether this member holds it.
func (t *talk) read(annotations map[string]string, isOurs bool, self string) {
	id, by, _ := strings.Cut(annotations[answers], " ")
	switch question := annotations[asks]; {
	case isOurs:
		t.theirs = ""
		if t.ours != "" && id == t.ours && by != self {
			t.by = by
		}
	case id == question:
		t.theirs = ""
	default:
		t.theirs = question
	}
}
