package app

import (
	"errors"
	"fmt"
	"io"

	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// report prints what was found and remembers what is wrong.
type report struct {
	out      io.Writer
	problems []error
}

func (r *report) ok(what string) { fmt.Fprintf(r.out, "ok       %s\n", console.Plain(what)) }

func (r *report) note(text string) { fmt.Fprintf(r.out, "note     %s\n", console.Plain(text)) }

// problem prints each of several problems on a line of its own.
func (r *report) problem(err error) {
	for _, one := range usage.Each(err) {
		fmt.Fprintf(r.out, "problem  %v\n", one)
		r.problems = append(r.problems, one)
	}
}

// err is nil where nothing is wrong. What is wrong has been printed.
func (r *report) err() error {
	var summary error
	switch n := len(r.problems); n {
	case 0:
		return nil
	case 1:
		summary = errors.New("check found 1 problem")
	default:
		summary = fmt.Errorf("check found %d problems", n)
	}
	if ExitCode(errors.Join(r.problems...)) == ExitUsage {
		return usage.Wrap(summary)
	}
	return summary
}
