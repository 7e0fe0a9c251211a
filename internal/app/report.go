package app

import (
	"errors"
	"fmt"

	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// report shows what was found and remembers what is wrong.
type report struct {
	out      *console.Findings
	problems []error
}

func (r *report) ok(what string) { r.out.Show(console.OK, what) }

func (r *report) note(text string) { r.out.Show(console.Note, text) }

// problem shows each of several problems by itself.
func (r *report) problem(err error) {
	for _, one := range usage.Each(err) {
		r.out.Show(console.Problem, one.Error())
		r.problems = append(r.problems, one)
	}
}

// err is nil where nothing is wrong. What is wrong has been shown.
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
