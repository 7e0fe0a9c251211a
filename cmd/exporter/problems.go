package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
)

// The exit codes.
const (
	exitFailed = 1 // failed while running
	exitUsage  = 2 // wrong usage or configuration
)

// usageError is a mistake in the command line or the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitCode tells scripts whether the same command may go better the next time, once what is around it is mended, or
// only after somebody changed the command or the configuration.
func exitCode(err error) int {
	var usage usageError
	var problems *config.Problems
	var newer *checkpoint.NewerError
	var refused *control.RefusedError
	if errors.As(err, &usage) || errors.As(err, &problems) || errors.As(err, &newer) || errors.As(err, &refused) {
		return exitUsage
	}
	return exitFailed
}

// severalError is several mistakes of one kind.
type severalError struct {
	what string
	errs []error
}

// several is nil where there is no error, the error where there is one, and otherwise all with a line for each.
func several(what string, errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return &severalError{what, errs}
}

// Error has the form of config.Problems.
func (e *severalError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d problems:", e.what, len(e.errs))
	for _, err := range e.errs {
		b.WriteString("\n  " + err.Error())
	}
	return b.String()
}

func (e *severalError) Unwrap() []error { return e.errs }

// cause is an error of the operating system without the path and the address, which the message has already.
func cause(err error) error {
	var system *os.SyscallError
	if errors.As(err, &system) {
		return system.Err
	}
	return err
}
