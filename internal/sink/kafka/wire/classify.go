package wire

import (
	"errors"
	"strings"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Classify sorts an error of this package. Errors of the network, and what it does not know, are Retriable.
func Classify(err error) Class {
	var answer *Error
	var connect *ConnectError
	var login *loginFailure
	switch {
	case errors.As(err, &answer):
		return rowOf(answer.Code).class
	case errors.As(err, &connect):
		return connect.Class
	case errors.As(err, &login):
		return login.Class
	}
	return Retriable
}

// Reason is a short word for an error, for a metric's label.
func Reason(err error) string {
	var answer *Error
	var connect *ConnectError
	var login *loginFailure
	switch {
	case errors.As(err, &answer):
		return strings.ToLower(answer.Name())
	case errors.As(err, &login):
		return "login"
	case isTimeout(err):
		return "timeout"
	case errors.As(err, &connect):
		return "unreachable"
	}
	return "disconnected"
}

// Explain adds to an error of this package what causes it and what to change, where that is known. A Fatal one becomes
// a *sink.PermanentError. Classify and errors.As see through it.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	explained := err
	if advice := advise(err); advice != "" {
		explained = &advised{err, advice}
	}
	var permanent *sink.PermanentError
	if Classify(err) == Fatal && !errors.As(err, &permanent) {
		return &sink.PermanentError{Err: explained}
	}
	return explained
}

type advised struct {
	error
	advice string
}

func (a *advised) Error() string { return a.error.Error() + ": " + a.advice }
func (a *advised) Unwrap() error { return a.error }

func advise(err error) string {
	var answer *Error
	var connect *ConnectError
	var login *loginFailure
	switch {
	case errors.As(err, new(*advised)):
		return ""
	case errors.As(err, &answer):
		return rowOf(answer.Code).advice(answer.Needs)
	case errors.As(err, &connect):
		return connect.Remedy
	case errors.As(err, &login):
		return login.Remedy
	}
	return ""
}
