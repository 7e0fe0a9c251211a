package pipeline

import "github.com/kubecdc/kubecdc/internal/delivery"

// listener is one of a run, with what came of opening its sink.
type listener struct {
	*delivery.Listener
	opening chan openedSink // nil before that began
}

// openedSink is what came of opening a sink.
type openedSink struct {
	lost bool // its log lost acknowledged records
	err  error
}
