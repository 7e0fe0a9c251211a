package verify

import (
	"errors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/decode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Log is what a consumer of a sink's log believes to exist. It takes memory for each object that the log names.
type Log struct {
	// Records is how many messages were taken, Foreign how many of them are not of this exporter's cluster, or not
	// kubecdc's.
	Records, Foreign int

	only      string // the first eight characters of the cluster's uid; "" takes all clusters
	resources map[string]map[change.Key]held
	begun     map[string]int64 // by resource and snapshot: when a snapshot began
	cleared   []cleared
	rows      map[string]map[string]held // by resource and row of a table: what was told there last
}

// held is the last that the log says of an object.
type held struct {
	uid, version string
	gone         bool
	at           int64 // orders the records of one log
	object       change.Key
	topic        string // of a broker with several, which are read one after the other, as partitions are
	partition    int32
	row          string // in a table
}

// precedes says whether it was told before the other one. Within a partition the later one is read later. An object
// whose label or key changes goes on in another one.
func (h *held) precedes(other *held) bool {
	if h.topic == other.topic && h.partition == other.partition || h.at > other.at {
		return false
	}
	return h.at < other.at || change.CompareVersions(h.version, other.version) < 0
}

// cleared is a full snapshot after which only what it names exists.
type cleared struct {
	resource, namespace, version string
	at                           int64
}

// NewLog returns an empty log. Where several clusters write to one place, only is the uid of the one to look at, and
// otherwise "": the records of an earlier cluster behind the same name count, too.
func NewLog(only string) *Log {
	return &Log{
		only:      only[:min(len(only), 8)],
		resources: map[string]map[change.Key]held{}, begun: map[string]int64{}, rows: map[string]map[string]held{},
	}
}

// Take folds the next message. It returns an error for a message of kubecdc's whose value is damaged.
func (l *Log) Take(m *sink.Stored) error {
	l.Records++
	id, err := decode.ID(m)
	if m.Erases && errors.Is(err, change.ErrForeignID) {
		l.erase(m)
		return nil
	}
	if err != nil && decode.IsActor(m) {
		return nil // it says nothing of the state of an object
	}
	if err != nil || l.only != "" && id.Cluster != l.only {
		l.Foreign++
		return nil
	}
	if !id.Op.OfObject() {
		return l.frame(m, id)
	}
	objects := l.resources[id.Resource]
	if objects == nil {
		objects = map[change.Key]held{}
		l.resources[id.Resource] = objects
	}
	told := held{uid: id.UID, version: id.ResourceVersion, gone: m.Erases || id.Op == change.Deleted, at: l.at(m), object: id.Key, row: m.Row}
	if m.Key != nil {
		told.topic, told.partition = m.Destination, m.Partition
	}
	if before, known := objects[id.Key]; !known || !told.precedes(&before) {
		objects[id.Key] = told
	}
	if l.rows[id.Resource] == nil {
		l.rows[id.Resource] = map[string]held{}
	}
	switch {
	case m.Erases:
		delete(l.rows[id.Resource], m.Row)
	case m.Row != "":
		l.rows[id.Resource][m.Row] = told
	}
	return nil
}

// at orders by the log's clock, and by the order of reading where it has none: partitions are read one after the other.
func (l *Log) at(m *sink.Stored) int64 {
	if m.Time.IsZero() {
		return int64(l.Records)
	}
	return m.Time.UnixNano()
}

// erase takes the key out that somebody else's marker, or the end of keys, names.
func (l *Log) erase(m *sink.Stored) {
	for resource, rows := range l.rows {
		object := rows[m.Row].object
		delete(rows, m.Row)
		if h, known := l.resources[resource][object]; known && h.row == m.Row {
			h.gone, h.at = true, l.at(m)
			l.resources[resource][object] = h
		}
	}
}

// frame notes what a full snapshot clears: after a log lost what it had acknowledged, what the snapshot does not name
// is gone. The end may be read before what lies between in other partitions.
func (l *Log) frame(m *sink.Stored, id change.ID) error {
	if id.Op != change.SnapshotBegin && id.Op != change.SnapshotEnd {
		return nil
	}
	c, err := decode.Read(m)
	if err != nil || c.Reason != change.Lost {
		return err
	}
	run := id.Resource + " " + id.Snapshot
	if id.Op == change.SnapshotBegin {
		l.begun[run] = l.at(m)
		return nil
	}
	if at, known := l.begun[run]; known {
		l.cleared = append(l.cleared, cleared{id.Resource, id.Key.Namespace, decode.SnapshotVersion(id.Snapshot), at})
	}
	return nil
}

// exists says whether the object is there for a consumer.
func (l *Log) exists(resource string, key change.Key, h held) bool {
	if h.gone {
		return false
	}
	for _, c := range l.cleared {
		ofIt := c.resource == resource && (c.namespace == "" || c.namespace == key.Namespace)
		if ofIt && h.at < c.at && change.CompareVersions(h.version, c.version) <= 0 {
			return false
		}
	}
	return true
}
