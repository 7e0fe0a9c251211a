package nats

import (
	"context"
	"errors"
	"fmt"
	"net"

	natsgo "github.com/nats-io/nats.go"
)

// unreachableError says in a person's words why there is no connection, and what to do. It is for a while only: servers
// start again.
type unreachableError struct {
	text string
	err  error // the library's
}

func (e *unreachableError) Error() string { return e.text }
func (e *unreachableError) Unwrap() error { return e.err }

func unreachable(servers string, err error) error {
	why := terse{err}.Error()
	var network net.Error
	switch {
	case errors.Is(err, natsgo.ErrNoServers):
		why = "nobody answers there"
	case errors.As(err, &network) && network.Timeout(), errors.Is(err, context.DeadlineExceeded):
		why = "no answer in time"
	}
	return &unreachableError{fmt.Sprintf("connect to %s: %s: check the URL, and that the server is up", servers, why), err}
}
