package registry

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"
)

// Error is what a registry said, or that it said nothing.
type Error struct {
	Doing   string // with the subject
	Err     error  // with the registry's words
	Refused bool   // only a person can mend it
	Away    bool   // whatever is asked, the answer would be the same
}

func (e *Error) Error() string { return fmt.Sprintf("schema registry: %s: %v", e.Doing, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// maxWords bounds what is told of an answer.
const maxWords = 500

// explain makes an error of the client one that says what to do.
func explain(doing string, err error) error {
	var response *sr.ResponseError
	if !errors.As(err, &response) {
		var to *url.Error // with the address and, perhaps, a login in it
		if errors.As(err, &to) {
			err = to.Err
		}
		return &Error{Doing: doing, Err: fmt.Errorf("it does not answer: %w", err), Away: true}
	}
	words := response.Message
	if words == "" {
		words = strings.ToValidUTF8(string(response.Raw), "?")
	}
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "..."
	}
	e := &Error{Doing: doing, Err: fmt.Errorf("status %d: %s", response.StatusCode, words)}
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized:
		e.say("correct user, password or token in kafka.registry")
	case code == http.StatusForbidden:
		e.say("allow the exporter's user to read and to write the subject, or set register: false")
	case code == http.StatusConflict:
		e.say("the subject has versions that ours does not go with: give the topic another subject, or lower the subject's compatibility")
	case code == http.StatusUnprocessableEntity:
		e.say("look into the registry's log")
	case code == http.StatusNotFound:
		e.say("is kafka.registry.url the path of the API of Confluent's registry?")
	default:
		e.Away = code >= 500 || code == http.StatusTooManyRequests
	}
	return e
}

// say adds what a person can do.
func (e *Error) say(remedy string) { e.Err, e.Refused = fmt.Errorf("%w: %s", e.Err, remedy), true }

func isRefused(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Refused
}

func isAway(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Away
}
