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
	r := console.Findings{Out: &out}
	r.OK("configuration")
	r.Note("by the way")
	if r.End() != nil {
		t.Errorf("got %v without a problem", r.End())
	}
	r.Problem(usage.Several("resources", errTest, usage.Wrap(errTest)))
	r.Problem(errTest)
	if err := r.End(); err.Error() != "check found 3 problems" || !usage.Is(err) {
		t.Errorf("got %v, a mistake: %t", err, usage.Is(err))
	}
	want := "ok       configuration\nnote     by the way\nproblem  cause\nproblem  cause\nproblem  cause\n"
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", &out, want)
	}
}
