package telemetry

import "time"

// history is how far back an API server can tell at least what changed, by default: it compacts etcd every five
// minutes, up to where it stood five minutes before (kube-apiserver's --etcd-compaction-interval). Its watch caches,
// which it has for all but Events, often go further back, and after a restart begin anew. So what is made of it is an
// estimate.
const history = 5 * time.Minute

// historyLeft is how long, about, a watch can still be opened where the state stands, if the oldest record that is not
// saved was received then.
func historyLeft(now, oldest time.Time) time.Duration {
	if oldest.IsZero() {
		return history
	}
	return max(0, history-now.Sub(oldest))
}
