package telemetry

import "github.com/kubecdc/kubecdc/internal/change"

// shownError is the error's text, which may name an object.
func shownError(err error) string { return change.Shown(err.Error(), change.MaxShown) }
