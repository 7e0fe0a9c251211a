package checkpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

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

// SetCluster saves the identity, durably. The cluster that it takes the place of stays one of those that were met.
func (s *Store) SetCluster(c Cluster) error {
	before, found, err := s.Cluster()
	if err != nil {
		return err
	}
	return s.write(func(w *writer) error {
		if found {
			if err := w.batch.Set(uidKey(before.UID), nil, nil); err != nil {
				return err
			}
		}
		return w.batch.Set(clusterKey(), appendCluster(nil, c), nil)
	})
}

// MeetCluster notes durably that the cluster of the uid is behind the name now, before anything is told of it.
func (s *Store) MeetCluster(uid string) error {
	return s.write(func(w *writer) error { return w.batch.Set(uidKey(uid), nil, nil) })
}

// Clusters are the uids of all clusters that were ever behind the name: what is told under another one is not ours.
func (s *Store) Clusters() ([]string, error) {
	var uids []string
	saved, found, err := s.Cluster()
	if err != nil {
		return nil, err
	}
	if found {
		uids = append(uids, saved.UID)
	}
	err = s.each([]byte{tableUID}, func(key, _ []byte) error {
		uids = append(uids, string(key[1:]))
		return nil
	})
	positions, positionsErr := s.Positions() // of a state that older versions wrote
	for _, position := range positions {
		if position.Epoch != "" && position.Epoch != change.Interrupted {
			uids = append(uids, change.ClusterOf(position.Epoch))
		}
	}
	slices.Sort(uids)
	return slices.Compact(uids), errors.Join(err, positionsErr)
}
