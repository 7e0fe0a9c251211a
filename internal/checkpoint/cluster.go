package checkpoint

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// EpochOf is the epoch of the history, as change.NewEpoch names it: of the cluster that had the name when it was found.
func (s *Store) EpochOf(history History) (string, error) {
	clusters, err := s.met()
	if err != nil {
		return "", err
	}
	uid, since := "", History(0)
	for other, met := range clusters {
		if met <= history && met > since {
			uid, since = other, met
		}
	}
	if history <= 1 {
		return uid, nil
	}
	return change.NewEpoch(uid, int64(history)), nil
}

// Met notes durably that the cluster of the uid has the name, and returns the history that began when that was noted
// first: 1 for the first cluster.
func (s *Store) Met(uid string) (History, error) {
	clusters, err := s.met()
	if err != nil || clusters[uid] != 0 {
		return clusters[uid], err
	}
	since := History(1)
	if len(clusters) > 0 {
		since = History(time.Now().UnixMilli())
	}
	return since, s.set(keyOf(tableUID, uid), binary.AppendUvarint(nil, uint64(since)))
}

// met are the uids of the clusters that ever had the name, each with the history that Met returns.
func (s *Store) met() (map[string]History, error) {
	return byName(s.database, tableUID, "the clusters that were met", func(value []byte) (History, error) {
		since, err := parseNumber(value)
		return max(History(since), 1), err
	})
}

// Cluster identifies the cluster that a state is about.
type Cluster struct {
	Name string // as configured
	UID  string // of namespace kube-system
}

// OtherClusterError says that a state is another cluster's.
type OtherClusterError struct {
	Dir        string
	Saved, Now Cluster
}

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("state %s belongs to cluster %q (uid %s), not to %q (uid %s): choose another state.dir, or reset it with: exporter checkpoint reset --state-dir %s",
		e.Dir, e.Saved.Name, e.Saved.UID, e.Now.Name, e.Now.UID, e.Dir)
}

// CompareCluster compares the saved identity with the cluster that is there now. anew says that another cluster has the
// name, so no saved position means anything. Another name is an *OtherClusterError.
func CompareCluster(dir string, saved, now Cluster) (anew bool, err error) {
	if saved.Name != now.Name {
		return false, &OtherClusterError{Dir: dir, Saved: saved, Now: now}
	}
	return saved.UID != now.UID, nil
}

// Cluster is the saved identity; false if the state has none yet.
func (s *Store) Cluster() (Cluster, bool, error) {
	return read(s.database, keyOf(tableCluster), "the cluster's identity", parseCluster)
}

// SetCluster saves the identity, durably. The cluster that it replaces stays one of those that were met.
func (s *Store) SetCluster(c Cluster) error {
	before, found, err := s.Cluster()
	if err != nil {
		return err
	}
	_, noted, err := s.get(keyOf(tableUID, before.UID))
	if err != nil {
		return err
	}
	return s.write(func(b *rows) error {
		if found && !noted {
			b.set(keyOf(tableUID, before.UID), nil)
		}
		b.set(keyOf(tableCluster), appendCluster(nil, c))
		return nil
	})
}

// Clusters are the uids of all clusters that ever had the name, sorted: a record of another uid is not ours.
func (s *Store) Clusters() ([]string, error) {
	saved, found, err := s.Cluster()
	if err != nil {
		return nil, err
	}
	uids, err := s.names(tableUID)
	if found {
		uids = append(uids, saved.UID)
	}
	slices.Sort(uids)
	return slices.Compact(uids), err
}

// redactionKeySize is the size in bytes of the hash that the key is used with, SHA-256.
const redactionKeySize = 32

// RedactionKey is this state's key for the hashes that replace secret values. The first call makes it, and it stays, so
// that a value has one hash for as long as the state lives.
func (s *Store) RedactionKey() ([]byte, error) {
	key, found, err := s.get(keyOf(tableRedaction))
	if err != nil || found {
		return key, err
	}
	key = make([]byte, redactionKeySize)
	rand.Read(key) // never fails
	if err := s.set(keyOf(tableRedaction), key); err != nil {
		return nil, fmt.Errorf("save the key of redacted values: %w", err)
	}
	return key, nil
}

// Configurations are what SetConfiguration has saved, by the names of the sinks.
func (s *Store) Configurations() (map[string][]byte, error) {
	return byName(s.database, tableConfig, "", func(text []byte) ([]byte, error) { return bytes.Clone(text), nil })
}

// SetConfiguration saves the configuration with which the sink was opened, durably. Its text is the caller's own.
func (s *Store) SetConfiguration(sinkName string, text []byte) error {
	return s.set(keyOf(tableConfig, sinkName), text)
}

// appendCluster appends an identity: name, uid.
func appendCluster(dst []byte, c Cluster) []byte { return append(appendText(dst, c.Name), c.UID...) }

// parseCluster is the inverse of appendCluster.
func parseCluster(value []byte) (Cluster, error) {
	r := Reader{Rest: value}
	c := Cluster{Name: r.Text()}
	if c.UID = string(r.Rest); r.Bad {
		return Cluster{}, errValue
	}
	return c, nil
}

// Namespaces are the labels that SetNamespace has saved, by the names of the namespaces.
func (s *Store) Namespaces() (map[string]map[string]string, error) {
	parse := func(value []byte) (labels map[string]string, err error) {
		err = json.Unmarshal(value, &labels)
		return labels, err
	}
	return byName(s.database, tableNamespace, "the labels of a namespace", parse)
}

// SetNamespace saves the labels of the namespace; nil forgets it.
func (s *Store) SetNamespace(name string, labels map[string]string) error {
	value, err := json.Marshal(labels)
	if err != nil { // texts alone can always be written
		return fmt.Errorf("describe the labels of namespace %s: %w", name, err)
	}
	return s.write(func(r *rows) error {
		if labels == nil {
			r.remove(keyOf(tableNamespace, name))
		} else {
			r.set(keyOf(tableNamespace, name), value)
		}
		return nil
	})
}
