package telemetry

// The states of streams and sinks.
const (
	starting     = "starting"
	snapshotting = "snapshot"
	watching     = "watching"
	waiting      = "waiting"
	open         = "open"
	failing      = "failing"
	stopped      = "stopped"
)

func streamStates() []string { return []string{starting, snapshotting, watching, waiting, failing} }

func sinkStates() []string { return []string{starting, open, failing, stopped} }
