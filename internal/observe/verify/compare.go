package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Report is what exporter verify says of one sink, and with -o json its document.
type Report struct {
	Sink    string `json:"sink"`
	Kind    string `json:"kind"`
	Equal   bool   `json:"equal"`
	Records int    `json:"records"` // read from the sink
	Foreign int    `json:"foreign"` // of them, not of this cluster's exporter
	Streams []Row  `json:"streams"`
	// Undecided says that there are differences which may be on their way.
	Undecided bool `json:"undecided,omitempty"`
	// Note says what stands behind the differences, "" where the exporter's position proves them.
	Note string `json:"note,omitempty"`
}

// Row is one stream of a Report.
type Row struct {
	Result
	Position string `json:"position,omitempty"` // the exporter's
	Proven   bool   `json:"proven"`             // the differences, where there are any, are none on their way
}

// Progress is how far the exporter has come with a stream, as its saved state says.
type Progress struct {
	Known    bool   // the rest is
	Position string // resourceVersion; "" is none
	Owed     bool   // the sink has not got all of a full snapshot
}

// Add adds a stream. Differences that nobody could prove are told where no exporter could be asked, and are no verdict
// where one runs: it may be about to deliver them. Waited is for how long a proof was waited for.
func (r *Report) Add(result Result, proven bool, at Progress, waited time.Duration) {
	equal := len(result.Differences) == 0
	row := Row{Result: result, Position: at.Position, Proven: proven || equal}
	r.Streams = append(r.Streams, row)
	r.Equal = r.Equal && equal
	switch {
	case row.Proven:
		return
	case !at.Known:
		r.Note = fmt.Sprintf("no exporter's state was found, so the differences are what was there all of %s: name it with --state-dir or --server", waited)
		return
	case at.Owed:
		r.Note = fmt.Sprintf("not decided: the exporter owes this sink a full snapshot of %s: try again when it is delivered", result.Stream)
	default:
		r.Note = fmt.Sprintf("not decided after %s: the exporter stands at resourceVersion %s of %s, and what was listed at %s may be on its way: try again with a longer --timeout",
			waited, cmp.Or(row.Position, "none"), result.Stream, row.ResourceVersion)
	}
	r.Undecided = true
}

// Differences is how many there are.
func (r *Report) Differences() (n int) {
	for _, row := range r.Streams {
		n += len(row.Differences)
	}
	return n
}

// EqualObjects is how many objects are the same on both sides.
func (r *Report) EqualObjects() (n int) {
	for _, row := range r.Streams {
		n += row.Result.Equal
	}
	return n
}

// Kind is how a sink differs from the cluster in one object.
type Kind string

// The kinds of a Difference.
const (
	Missing Kind = "missing" // the cluster has it, the sink does not
	Stale   Kind = "stale"   // the sink has another version, or another object of the same name
	Extra   Kind = "extra"   // the sink has it, the cluster does not
)

// Difference is one object in which the sink differs from the cluster. UIDs and versions are "" where there is none.
type Difference struct {
	Kind           Kind   `json:"kind"`
	Stream         string `json:"stream"`
	Namespace      string `json:"namespace,omitempty"`
	Name           string `json:"name"`
	ClusterUID     string `json:"clusterUid,omitempty"`
	ClusterVersion string `json:"clusterResourceVersion,omitempty"`
	SinkUID        string `json:"sinkUid,omitempty"`
	SinkVersion    string `json:"sinkResourceVersion,omitempty"`
	// Place is the key in a table that the sink has beside that which it told the object with last.
	Place string `json:"place,omitempty"`
}

// Key is the object's.
func (d *Difference) Key() change.Key { return change.Key{Namespace: d.Namespace, Name: d.Name} }

// List is what the cluster has of one stream at one version.
type List struct {
	Stream  change.Stream
	Version string
	Objects map[change.Key]Listed
	// Deletes says that every delete is told to the sink, so that what it has and the cluster has not is extra. It is
	// not so where a filter or ops may keep a delete back.
	Deletes bool
}

// Listed is one object of a List.
type Listed struct {
	UID, Version string
	// Optional says that a filter or ops may keep this version from the sink: whatever the sink has of it is right.
	Optional bool
	// Behind says that changes of the object may be ignored: an older version of it may be all that the sink was told.
	Behind bool
}

// Result is what a comparison of one stream found.
type Result struct {
	Stream          string `json:"stream"`
	ResourceVersion string `json:"resourceVersion"` // of the list
	Objects         int    `json:"objects"`         // in the cluster
	Equal           int    `json:"equal"`
	Missing         int    `json:"missing"`
	Stale           int    `json:"stale"`
	Extra           int    `json:"extra"`
	// Changing counts objects of which the sink has something newer than the list.
	Changing int `json:"changing"`
	// Unjudged counts those of which a filter, ops or ignore leave open what the sink must have.
	Unjudged int `json:"unjudged"`

	Differences []Difference `json:"differences,omitempty"` // by key
}

// Compare compares the log with a list. What the log has that is newer than the list is no difference.
func Compare(l *Log, list *List) Result {
	r := Result{Stream: list.Stream.String(), ResourceVersion: list.Version, Objects: len(list.Objects)}
	resource := list.Stream.Resource.String()
	objects := l.resources[resource]
	ofIt := func(key change.Key) bool {
		return list.Stream.Namespace == "" || list.Stream.Namespace == key.Namespace
	}
	isNewer := func(h held) bool { return change.CompareVersions(h.version, list.Version) > 0 }
	for key, listed := range list.Objects {
		h, known := objects[key]
		exists := known && l.exists(resource, key, h)
		switch {
		case exists && h.version == listed.Version && h.uid == listed.UID:
			r.Equal++
		case isNewer(h):
			r.Changing++
		case listed.Optional, listed.Behind && exists && h.uid == listed.UID:
			r.Unjudged++
		case !exists:
			r.add(Missing, key, listed, held{})
		default:
			r.add(Stale, key, listed, h)
		}
	}
	for key, h := range objects {
		_, there := list.Objects[key]
		switch {
		case there || !ofIt(key) || !l.exists(resource, key, h):
		case isNewer(h):
			r.Changing++
		case !list.Deletes:
			r.Unjudged++
		default:
			r.add(Extra, key, Listed{}, h)
		}
	}
	for at, h := range l.rows[resource] { // keys in a table that consumers take for an object more
		switch {
		case !ofIt(h.object) || objects[h.object].row == at:
		case isNewer(h):
			r.Changing++
		default:
			r.add(Extra, h.object, Listed{}, h)
			r.Differences[len(r.Differences)-1].Place = h.row
		}
	}
	slices.SortFunc(r.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Key().String(), b.Key().String()), cmp.Compare(a.Place, b.Place))
	})
	return r
}

func (r *Result) add(kind Kind, key change.Key, listed Listed, h held) {
	r.Differences = append(r.Differences, Difference{
		Kind: kind, Stream: r.Stream, Namespace: key.Namespace, Name: key.Name,
		ClusterUID: listed.UID, ClusterVersion: listed.Version, SinkUID: h.uid, SinkVersion: h.version,
	})
	r.count(kind)
}

func (r *Result) count(kind Kind) {
	switch kind {
	case Missing:
		r.Missing++
	case Stale:
		r.Stale++
	case Extra:
		r.Extra++
	}
}

// Both is the result without the differences of objects in which the other one has none: what differs in two
// comparisons is not on its way.
func (r Result) Both(other Result) Result {
	keys := map[change.Key]bool{}
	for i := range other.Differences {
		keys[other.Differences[i].Key()] = true
	}
	kept := r
	kept.Differences, kept.Missing, kept.Stale, kept.Extra = nil, 0, 0, 0
	for _, d := range r.Differences {
		if !keys[d.Key()] {
			kept.Changing++
			continue
		}
		kept.Differences = append(kept.Differences, d)
		kept.count(d.Kind)
	}
	return kept
}

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
	if m.Erases && errors.Is(err, change.ErrForeignID) { // somebody else's marker, or the end of keys
		for resource, rows := range l.rows {
			object := rows[m.Row].object
			delete(rows, m.Row)
			if h, known := l.resources[resource][object]; known && h.row == m.Row {
				h.gone, h.at = true, l.at(m)
				l.resources[resource][object] = h
			}
		}
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
		version, _, _ := strings.Cut(id.Snapshot, ".") // that was listed
		l.cleared = append(l.cleared, cleared{id.Resource, id.Key.Namespace, version, at})
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
