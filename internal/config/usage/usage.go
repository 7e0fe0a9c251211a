package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// mistake is a mistake in the command line or the configuration.
type mistake struct{ error }

func (m mistake) Unwrap() error { return m.error }

// Wrap makes the error a mistake.
func Wrap(err error) error { return mistake{err} }

// Errorf is a mistake, as fmt.Errorf words it.
func Errorf(format string, args ...any) error { return mistake{fmt.Errorf(format, args...)} }

// Is says whether a mistake is among what the error wraps.
func Is(err error) bool {
	return errors.As(err, new(mistake))
}

// severalError is several mistakes of one kind.
type severalError struct {
	what string
	errs []error
}

// Several is nil where there is no error, the error where there is one, and otherwise all with a line for each.
func Several(what string, errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return &severalError{what, errs}
}

// Each is each error that Several, or errors.Join, has made one of; nil is none.
func Each(err error) []error {
	if err == nil {
		return nil
	}
	if all, is := err.(*severalError); is {
		return all.errs
	}
	all, is := err.(interface{ Unwrap() []error })
	if is && err.Error() == errors.Join(all.Unwrap()...).Error() { // else its own words say more
		return all.Unwrap()
	}
	return []error{err}
}

// Error has the form of config.Problems.
func (e *severalError) Error() string { return Listed(e.what, e.errs) }

// Listed is a heading, and a line for each problem.
func Listed[T any](what string, problems []T) string {
	text := fmt.Sprintf("%s: %d problems:", what, len(problems))
	for _, one := range problems {
		text += fmt.Sprintf("\n  %v", one)
	}
	return text
}

func (e *severalError) Unwrap() []error { return e.errs }

// Some names a few of many for people, in alphabetical order.
func Some(names []string, most int) string {
	names = slices.Sorted(slices.Values(names))
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
