package destination

import "github.com/kubecdc/kubecdc/internal/sink/kafka"

// SignalDesk does what signals ask for.
type SignalHandler = kafka.SignalHandler
