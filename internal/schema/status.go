package schema

import "github.com/kubecdc/kubecdc/internal/change"

// status is the document of /statusz. It is no record, but programs read it as well.
func (b book) status() definition {
	return b.fields("the state of a running exporter, as /statusz shows it", definition{
		"version":       described(definition{"type": "string"}, "of the exporter"),
		"cluster":       described(definition{"type": "string"}, "the configured name"),
		"clusterUid":    described(definition{"type": "string"}, "the uid of namespace kube-system; empty if there is none"),
		"uptimeSeconds": seconds(),
		"healthy":       described(definition{"type": "boolean"}, "false if a restart may help"),
		"ready":         described(definition{"type": "boolean"}, "every sink is open, the state is saved, and each stream of the start has begun or has failed to begin"),
		"problems":      described(listOf(name()), "why the exporter is not healthy"),
		"streams":       described(mapOf(b.stream()), "by name, such as pods, deployments.apps, shop/secrets"),
		"sinks":         described(mapOf(b.sink()), "by their names"),
		"state": b.fields("saving", definition{
			"lastError":     described(name(), "missing while the state is saved"),
			"lastErrorTime": moment(),
			"failingSince":  described(moment(), "missing while the state is saved"),
			"savedAgain":    described(moment(), "when it was saved again, the last time that it could not be"),
			"log": b.fields("the log of the state, where there is one", definition{
				"lagSeconds":    described(seconds(), "since the oldest saved change was saved that it lacks"),
				"fenced":        described(definition{"type": "boolean"}, "another exporter writes it; this one does not, until it is started again"),
				"lastError":     described(name(), "missing while it is written"),
				"lastErrorTime": moment(),
			}, "fenced", "lastError", "lastErrorTime"),
		}, "lastError", "lastErrorTime", "failingSince", "savedAgain", "log"),
		"ha": b.fields("who leads, where several exporters share a task", definition{
			"leads":     described(definition{"type": "boolean"}, "this exporter does"),
			"leader":    described(name(), "the host of the one that does; missing while nobody does, or it is not known"),
			"since":     described(moment(), "when that one got the Lease, by its own clock"),
			"lease":     described(name(), "namespace/name"),
			"takeovers": described(count(), "how often this exporter has begun to lead since it started"),
			"lastError": described(name(), "missing while the API server answers for the Lease"),
			"standby": b.fields("how it follows the log of the state, while it stands by", definition{
				"whole":         described(definition{"type": "boolean"}, "it has had all that the log had, once since it began to wait"),
				"lagSeconds":    described(seconds(), "since it had all that the log had then, or since it began to wait"),
				"lastError":     described(name(), "missing while it can follow"),
				"lastErrorTime": moment(),
			}, "lastError", "lastErrorTime"),
		}, "leader", "since", "lastError", "standby"),
		"discovery": b.fields("what the API server serves", definition{
			"lastRead":      moment(),
			"lastError":     described(name(), "of the newest attempt, or of incomplete discovery"),
			"lastErrorTime": described(moment(), "when it was first seen"),
			"leftOut":       described(mapOf(name()), "resources and configured names that are not streamed, and why"),
		}, "lastRead", "lastError", "lastErrorTime", "leftOut"),
	}, "problems", "ha")
}

func (b book) stream() definition {
	return b.fields("a stream", definition{
		"state":              definition{"enum": []string{"starting", "snapshot", "watching", "waiting", "failing"}},
		"resourceVersion":    described(definition{"type": "string"}, "the lowest saved position of the sinks; empty before the first"),
		"positionAgeSeconds": described(seconds(), "since the position was last known to be the server's newest; 0 before the first time"),
		"historySeconds":     described(seconds(), "an estimate of how far back the API server can tell what changed"),
		"historyLeftSeconds": described(seconds(), "an estimate of how long it still has the changes after the position; historySeconds if nothing waits and a watch is open"),
		"heldBy":             described(listOf(name()), "the sinks that lag by more than half of the history"),
		"sinks":              described(mapOf(b.taker()), "those that take the stream, by their names"),
		"heldSince":          described(moment(), "since when the position of the first of them stands still"),
		"records":            described(count(), "received since the start"),
		"gaps":               described(count(), "since the start"),
		"lastGap":            b.lastGap(),
		"lastReconcile":      b.lastReconcile(),
		"snapshot":           b.runningSnapshot(),
		"lastError":          name(),
		"lastErrorTime":      moment(),
	}, "heldBy", "heldSince", "sinks", "lastGap", "lastReconcile", "snapshot", "lastError", "lastErrorTime")
}

func (b book) taker() definition {
	return b.fields("a sink that takes the stream", definition{
		"resourceVersion":    described(definition{"type": "string"}, "the saved position; empty before the first"),
		"positionAgeSeconds": described(seconds(), "since it moved or was confirmed last"),
		"comparing":          described(name(), "why the sink is being compared with the cluster; missing if it is not"),
		"waits": described(definition{"enum": []string{"opening", "stopped", "schema", "apart"}},
			"why the sink is not given the stream as others are: it is not open, a person must mend it, the stream has no schema yet, or it lags and has a watch of its own"),
		"since": described(moment(), "when its position began to stand still; missing while it does not"),
	}, "comparing", "waits", "since")
}

func (b book) lastGap() definition {
	return b.fields("a gap", definition{
		"reason":          reasons(func(r change.Reason) bool { return r.Gap() || r == change.Policy }),
		"stream":          name(),
		"sinks":           described(listOf(name()), "the sink that the gap is for; missing if it is for all sinks"),
		"object":          described(name(), "in a gap of reason policy"),
		"lastDelivered":   definition{"type": "string"},
		"resourceVersion": definition{"type": "string"},
		"since":           described(moment(), "when the stream was last known to be whole"),
		"time":            moment(),
		"rejected":        described(name(), "in a gap of reason policy: why the sink refused the record"),
		"resolved":        described(moment(), "when its dead letter was delivered after all; missing before"),
	}, "sinks", "object", "since", "rejected", "resolved")
}

func (b book) lastReconcile() definition {
	return b.fields("a comparison with the cluster", definition{
		"reason":          reasons(func(change.Reason) bool { return true }),
		"sinks":           described(listOf(name()), "the sinks that it was for; missing if it was for all"),
		"resourceVersion": version(),
		"replaced":        count(),
		"deleted":         count(),
		"synced":          count(),
		"limits":          b.limits(),
		"time":            moment(),
	}, "sinks", "limits")
}

func (b book) runningSnapshot() definition {
	return b.fields("a snapshot that is being read", definition{
		"reason":  reasons(func(change.Reason) bool { return true }),
		"sinks":   described(listOf(name()), "the sinks that it is for; missing if it is for all"),
		"since":   described(moment(), "when it began"),
		"limits":  b.limits(),
		"objects": described(count(), "that were listed"),
		"percent": described(definition{"type": "integer", "minimum": 0, "maximum": 100}, "of all objects; missing if the API server does not say how many there are"),
	}, "sinks", "limits", "percent")
}

func (b book) sink() definition {
	return b.fields("a sink", definition{
		"kind":                 described(name(), "kafka, nats, file or stdout"),
		"address":              described(name(), "where it writes, without a login"),
		"format":               described(name(), "of its messages"),
		"state":                definition{"enum": []string{"starting", "open", "failing", "stopped"}},
		"records":              described(count(), "durable since the start"),
		"queueRecords":         count(),
		"queueBytes":           count(),
		"spoolRecords":         count(),
		"spoolBytes":           count(),
		"oldestUnackedSeconds": seconds(),
		"mark":                 described(definition{"type": "string"}, "its place in its own log, as the sink writes it"),
		"note":                 described(name(), "how it works, if there is a choice"),
		"gaps":                 described(count(), "of this sink alone"),
		"lastGap":              b.lastGap(),
		"recentGaps":           described(listOf(b.lastGap()), "of this sink alone, five at most, the newest first"),
		"lastError":            name(),
		"lastErrorTime":        moment(),
		"failingSince":         described(moment(), "when the first error came after the last batch; missing if there was none"),
		"asking": b.fields("what others ask through its broker, if they may", definition{
			"followed":      described(count(), "since the start"),
			"refused":       described(count(), "since the start"),
			"lastError":     described(name(), "why nobody can ask; missing while somebody can"),
			"lastErrorTime": moment(),
		}, "lastError", "lastErrorTime"),
		"schemas": described(mapOf(b.schemaOf()), "in the sink's registry, by resource; missing without a registry"),
	}, "kind", "address", "format", "note", "lastGap", "recentGaps", "lastError", "lastErrorTime", "failingSince", "asking", "schemas")
}

func (b book) schemaOf() definition {
	return b.fields("the schema of a resource's records", definition{
		"state":     described(definition{"enum": []string{"registered", "behind", "waiting", "stopped"}}, "behind: records are written with the version that is known, and a newer one is not registered; waiting, stopped: they wait"),
		"subject":   name(),
		"id":        described(count(), "in the registry"),
		"lastError": name(),
		"since":     described(moment(), "when the state began"),
	}, "subject", "id", "lastError")
}

func seconds() definition { return definition{"type": "number", "minimum": 0} }
