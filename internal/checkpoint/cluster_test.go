package checkpoint

import (
	"slices"
	"testing"
)

// What a log holds of a cluster that was behind the name before is ours.
func TestI5ClustersThatWereBehindTheNameStayKnown(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	must(t, s.SetCluster(Cluster{Name: "a", UID: "1"}))
	must(t, s.SetCluster(Cluster{Name: "a", UID: "2"}))
	for range 2 {
		_, err := s.Met("3")
		must(t, err)
	}
	must(t, s.Close())
	s = open(t, dir)
	got, err := s.Clusters()
	must(t, err)
	if want := []string{"1", "2", "3"}; !slices.Equal(got, want) {
		t.Errorf("clusters are %q, want %q", got, want)
	}
	if now, _, err := s.Cluster(); err != nil || now.UID != "2" {
		t.Errorf("the cluster is %+v, %v", now, err)
	}
}
