package change

// Remarks are what was done to a record on its way to one sink. They go out beside the record.
type Remarks struct {
	// Trimmed are the paths that were cut to make the record fit into the sink, joined by commas; "" is none.
	Trimmed string
	// BeforeOmitted says that the record went without its Before, with which it did not fit into the sink. A delete
	// went without the last state of its object, which the record has still: it goes where the object went.
	BeforeOmitted bool
	// Replayed says of a dead letter that it is sent again, and what it is worth; "" is an ordinary record.
	Replayed Replayed
	// Rejected, of a gap of reason Policy, is why the sink will never take the record: "too_large", "invalid".
	Rejected string
	// Letter, of such a gap, is the id of the dead letter in which the record is kept; "" is none.
	Letter string
}

// LeftOut names what the record went without, "" is nothing.
func (m *Remarks) LeftOut() string {
	switch {
	case m == nil:
		return ""
	case m.BeforeOmitted && m.Trimmed != "":
		return "before," + m.Trimmed
	case m.BeforeOmitted:
		return "before"
	}
	return m.Trimmed
}

// Replayed is what a dead letter is worth when it is sent again.
type Replayed string

const (
	// Current is the object's newest state, as far as the exporter knows.
	Current Replayed = "current"
	// History is a state that a newer one has replaced, or of an object that is gone. Who keeps states passes over it.
	History Replayed = "history"
)

// Replay is a dead letter's way to its sink.
type Replay struct {
	Letter string // its id
	Force  bool   // send it also where it is History
	// Done is told once what became of it: nil is delivered, without what is left out. It returns at once.
	Done func(leftOut string, err error)
}
