package destination

import "github.com/kubecdc/kubecdc/internal/sink/kafka"

// SignalHandler does what signals ask for.
type SignalHandler = kafka.SignalHandler
