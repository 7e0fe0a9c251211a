package wire

import (
	"errors"
	"fmt"
)

// Error is an answer with one of Kafka's error codes.
type Error struct {
	Code    int16
	Message string         // the broker's, mostly empty
	Request string         // what was asked: "produce to topic t partition 3"
	Needs   string         // the permission or the settings that the request depends on
	Topic   string         // that the answer is about, where a request is about several
	Records map[int]string // of a batch that was refused for some of its records: their indexes, and why
}

// Name is Kafka's name of the code, such as "NOT_LEADER_OR_FOLLOWER".
func (e *Error) Name() string { return rowOf(e.Code).name }

// Routine says whether brokers give such an answer while they are at work: a leader moves, a transaction is still
// ending, a coordinator is being found. Who asks again soon hears something else.
func (e *Error) Routine() bool { return rowOf(e.Code).class == Retriable }

func (e *Error) Error() string {
	text := fmt.Sprintf("%s: Kafka's error %d %s", e.Request, e.Code, e.Name())
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Code is Kafka's error code in err, and 0 where there is none.
func Code(err error) int16 {
	var answer *Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}
