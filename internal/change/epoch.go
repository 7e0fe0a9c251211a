package change

import (
	"strconv"
	"time"
)

// An epoch is one history of one cluster: the uid of its namespace kube-system and, in every history but the first that
// was read, "~" and a name. An etcd that was restored gives versions again that it gave before, to other states of the
// same objects, so uid and version alone do not tell what a record says.
const epochSeparator = '~'

// NewEpoch is the epoch of a history of the cluster that was found at the time, in milliseconds since 1970.
func NewEpoch(clusterUID string, found int64) string {
	return clusterUID + string(epochSeparator) + strconv.FormatInt(found, 36)
}

// EpochFound is when the history was found, zero for the first one of a cluster.
func EpochFound(epoch string) time.Time {
	at := separatorOf(epoch)
	if at == len(epoch) {
		return time.Time{}
	}
	found, err := strconv.ParseInt(epoch[at+1:], 36, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(found)
}

// ClusterOf is the part of an epoch, or of an ID's Cluster, that names the cluster.
func ClusterOf(epoch string) string { return epoch[:separatorOf(epoch)] }

// SameCluster says whether the cluster of an ID may be the one with the uid.
func SameCluster(ofID, uid string) bool { return ClusterOf(ofID) == uid[:min(len(uid), 8)] }

// clusterOfID is what an id says of the epoch: the first eight characters of the uid, and the name of the history.
func clusterOfID(epoch string) string { return string(appendClusterOfID(nil, epoch)) }

func appendClusterOfID(dst []byte, epoch string) []byte {
	at := separatorOf(epoch)
	return append(append(dst, epoch[:min(at, 8)]...), epoch[at:]...)
}

func separatorOf(epoch string) int {
	for i := range len(epoch) {
		if epoch[i] == epochSeparator {
			return i
		}
	}
	return len(epoch)
}
