package check

import (
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
	if len(r.problems) == 0 {
		return nil
	}
	return &problemsError{r.problems}
}

// problemsError counts what is wrong, which has been shown. It wraps all of it, for the exit code.
type problemsError struct{ problems []error }

func (e *problemsError) Error() string {
	if len(e.problems) == 1 {
		return "check found 1 problem"
	}
	return fmt.Sprintf("check found %d problems", len(e.problems))
}

func (e *problemsError) Unwrap() []error { return e.problems }
