package app

import (
	"errors"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/statelog"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// The exit codes.
const (
	exitFailed = 1 // failed while running
	ExitUsage  = 2 // wrong usage or configuration
)

// ExitCode tells scripts whether the same command may go better the next time, once what is around it is mended, or
// only after somebody changed the command or the configuration.
func ExitCode(err error) int {
	var problems *config.Problems
	var newer *checkpoint.NewerError
	var refused *control.RefusedError
	if usage.Is(err) || errors.As(err, &problems) || errors.As(err, &newer) || errors.As(err, &refused) || statelog.IsForGood(err) {
		return ExitUsage
	}
	return exitFailed
}
