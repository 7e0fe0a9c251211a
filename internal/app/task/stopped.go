package task

import (
	"github.com/kubecdc/kubecdc/internal/election"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// isOvertaken says whether other exporters explain all of the error: what ended the term, and what was left in the
// queues since then.
func isOvertaken(err error) bool {
	overtaken := false
	return all(err, func(part error) (explained bool) {
		switch e := part.(type) {
		default:
			explained = part == errUnreachable
		case *sink.PermanentError:
			explained = e.Fenced
		case *sink.LateError, *election.OtherLeadsError:
			explained = true
		case *pipeline.LeftError:
			return true
		}
		overtaken = overtaken || explained
		return explained
	}) && overtaken
}

// all says whether each of the errors that are joined in err has a cause that holds.
func all(err error, holds func(error) bool) bool {
	if err == nil || holds(err) {
		return err != nil
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return all(e.Unwrap(), holds)
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !all(part, holds) {
				return false
			}
		}
		return true
	}
	return false
}
