package wire

import (
	"errors"
	"strings"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// errorsIn are the errors of this package that err is or wraps.
func errorsIn(err error) (answer *Error, connect *ConnectError, login *loginFailure) {
	errors.As(err, &answer)
	errors.As(err, &connect)
	errors.As(err, &login)
	return answer, connect, login
}

// Classify sorts an error of this package. Errors of the network, and what it does not know, are Retriable.
func Classify(err error) Class {
	switch answer, connect, login := errorsIn(err); {
	case answer != nil:
		return rowOf(answer.Code).class
	case connect != nil:
		return connect.Class
	case login != nil:
		return login.Class
	}
	return Retriable
}

// Reason is a short word for an error, for a metric's label.
func Reason(err error) string {
	switch answer, connect, login := errorsIn(err); {
	case answer != nil:
		return strings.ToLower(answer.Name())
	case login != nil:
		return "login"
	case isTimeout(err):
		return "timeout"
	case connect != nil:
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
	if errors.As(err, new(*advised)) {
		return ""
	}
	switch answer, connect, login := errorsIn(err); {
	case answer != nil:
		return rowOf(answer.Code).advice(answer.Needs)
	case connect != nil:
		return connect.Remedy
	case login != nil:
		return login.Remedy
	}
	return ""
}
