package app

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/sink"
)

var errTest = errors.New("cause")

// TestExitCodeTellsWhatToChange: 2 is for what only another command line or configuration mends.
func TestExitCodeTellsWhatToChange(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"usage", fmt.Errorf("run: %w", usage.Wrap(errTest)), ExitUsage},
		{"configuration", fmt.Errorf("load: %w", &config.Problems{}), ExitUsage},
		{"state of another format", &checkpoint.FormatError{}, ExitUsage},
		{"a log of another Lease", fmt.Errorf("take over: %w", statelog.OtherLease("a", "b")), ExitUsage},
		{"what a running exporter refuses", fmt.Errorf("ask: %w", &control.RefusedError{}), ExitUsage},
		{"no running exporter", &control.NotRunningError{}, exitFailed},
		{"one of several", usage.Several("resources", errTest, usage.Wrap(errTest)), ExitUsage},
		{"anything else", errTest, exitFailed},
		{"state in use", &checkpoint.InUseError{}, exitFailed},
		{"damaged state", &checkpoint.DamagedError{Err: errTest}, exitFailed},
		{"full disk", &disk.FullError{}, exitFailed},
		{"what a broker refuses", &sink.PermanentError{Err: errTest}, exitFailed},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, got, c.want)
		}
	}
}
