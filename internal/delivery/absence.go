package delivery

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// MakeAbsent makes the batch note that the sink misses the stream. A source may still hold the return from an earlier
// absence, which was told. So the generation of this one is another.
func MakeAbsent(batch *checkpoint.Batch, subscription checkpoint.Subscription) {
	since, owed := time.Now(), PendingSnapshot(subscription.Sink, subscription.Stream, change.Absent)
	owed.Generation = uint64(since.UnixNano())
	batch.Absent = append(batch.Absent, checkpoint.Absence{Subscription: subscription, Since: since})
	batch.PendingSnapshots = append(batch.PendingSnapshots, owed)
}

// PendingSnapshot is a full snapshot that the sink is owed.
func PendingSnapshot(sinkName, stream string, reason change.Reason) checkpoint.PendingSnapshot {
	return checkpoint.PendingSnapshot{Stream: stream, Owed: change.Owed{Sink: sinkName, Reason: reason}}
}
