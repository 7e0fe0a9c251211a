package checkpoint

import "fmt"

// Cluster is whose changes a state is about.
type Cluster struct {
	Name string // as configured
	UID  string // of namespace kube-system
}

// Match is what a saved identity says about a cluster.
type Match int

const (
	SameCluster Match = iota // go on
	NewEpoch                 // the same name for a cluster that was made anew: no saved position means anything
)

// OtherClusterError says that a state is another cluster's.
type OtherClusterError struct {
	Dir        string
	Saved, Now Cluster
}

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("state %s belongs to cluster %q (uid %s), not to %q (uid %s): choose another state.dir, or reset it with: exporter checkpoint reset --state-dir %s",
		e.Dir, e.Saved.Name, e.Saved.UID, e.Now.Name, e.Now.UID, e.Dir)
}

// CompareCluster compares the identity saved in the directory with the cluster that is there now. Another name is an
// *OtherClusterError; it does no I/O.
func CompareCluster(dir string, saved, now Cluster) (Match, error) {
	switch {
	case saved.Name != now.Name:
		return 0, &OtherClusterError{Dir: dir, Saved: saved, Now: now}
	case saved.UID != now.UID:
		return NewEpoch, nil
	}
	return SameCluster, nil
}

// Cluster is the saved identity, false in a state that has none yet.
func (s *Store) Cluster() (Cluster, bool, error) {
	value, found, err := s.get(clusterKey())
	if err != nil || !found {
		return Cluster{}, false, err
	}
	cluster, err := parseCluster(value)
	if err != nil {
		return Cluster{}, false, s.badValue("the cluster's identity", err)
	}
	return cluster, true, nil
}

// SetCluster saves the identity, durably.
func (s *Store) SetCluster(c Cluster) error {
	return s.write(func(w *writer) error {
		return w.batch.Set(clusterKey(), appendCluster(nil, c), nil)
	})
}
