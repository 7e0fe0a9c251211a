package wire

// Class says what an error allows.
type Class int

// The classes of errors.
const (
	Retriable Class = iota // send the same bytes again, after Refresh
	TooLarge               // the batch is larger than the topic takes
	Invalid                // the broker will never take a record of the batch; Error.Records may name it
	Reopen                 // the broker's view of the producer or of the log is another: open again at the mark
	Fenced                 // the epoch is over: a newer producer has the transactional id, or the transaction timed out
	Fatal                  // only a person can mend it: configuration, permission, credentials
)

func (c Class) String() string {
	return [...]string{"retriable", "too_large", "invalid", "reopen", "fenced", "fatal"}[c]
}
