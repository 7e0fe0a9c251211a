package conn

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrSilent is that the server did not answer in time.
var ErrSilent = errors.New("no answer from the server in time")

var (
	errDisconnected = errors.New("connection lost")
	errClosed       = errors.New("connection closed")
)

// EndedError is that nothing more can come of what was opened: open it again.
type EndedError struct{ error }

func (e *EndedError) Unwrap() error { return e.error }

// Ended makes an EndedError of the text.
func Ended(format string, args ...any) error {
	return &EndedError{fmt.Errorf(format, args...)}
}

// UnreachableError says in a person's words why there is no connection, and what to do. It is for a while only:
// servers start again.
type UnreachableError struct {
	text string
	err  error // the library's
}

func (e *UnreachableError) Error() string { return e.text }

func (e *UnreachableError) Unwrap() error { return e.err }

// Terse is an error of the client library without what the library puts around its text.
type Terse struct{ Err error }

func (e Terse) Error() string { return Detail(e.Err) }

func (e Terse) Unwrap() error { return e.Err }

// Detail is the text of an error of the server or of the client library, without what the library puts around it.
func Detail(err error) string {
	if api, is := errors.AsType[*jetstream.APIError](err); is && api.Description != "" {
		return api.Description
	}
	return strings.TrimPrefix(err.Error(), "nats: ")
}
