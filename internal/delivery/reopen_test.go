package delivery

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Of a log in which a failed batch is looked for, only our ids are kept.
func TestI6OfAFailedBatchOnlyOursIsKept(t *testing.T) {
	l := New(0, Sink{Name: "s"}, &Config{ClusterUID: clusterUID})
	l.reader.Foreign = func(id change.ID) (bool, error) { return !change.SameCluster(id.Cluster, clusterUID), nil }
	reading, err := l.reading()
	if err != nil {
		t.Fatal(err)
	}
	ours := update(pods(), "a", 5).ID(clusterUID).String()
	for _, id := range []string{update(pods(), "a", 5).ID("ffffffff-0000").String(), "somebody else's", ours} {
		reading.take(id)
	}
	if len(reading.retried) != 1 || reading.err() != nil {
		t.Errorf("%q are kept, %v", reading.retried, reading.err())
	}
}
