package check

import (
	"bytes"
	"errors"
	"testing"

	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/observe/console"
)

var errTest = errors.New("cause")

func TestReportCountsEachProblem(t *testing.T) {
	var out bytes.Buffer
	r := report{out: &console.Findings{Out: &out}}
	r.ok("configuration")
	r.note("by the way")
	if r.err() != nil {
		t.Errorf("got %v without a problem", r.err())
	}
	r.problem(usage.Several("resources", errTest, usage.Wrap(errTest)))
	r.problem(errTest)
	if err := r.err(); err.Error() != "check found 3 problems" || !usage.Is(err) {
		t.Errorf("got %v, a mistake: %t", err, usage.Is(err))
	}
	want := "ok       configuration\nnote     by the way\nproblem  cause\nproblem  cause\nproblem  cause\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &out, want)
	}
}
