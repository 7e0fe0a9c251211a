package control

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// State is the document of exporter checkpoint show -o json, and of GET /checkpoint.
type State struct {
	Cluster    string `json:"cluster"`
	ClusterUID string `json:"clusterUid"`
	// Clusters are the uids of all clusters that ever had the name.
	Clusters []string               `json:"clusters,omitempty"`
	Streams  map[string]StreamState `json:"streams"`
	Marks    map[string]string      `json:"marks"`
	Owed     []Owed                 `json:"owed,omitempty"`
	// Configurations are what exporter check compares the sinks' configurations with, by their names. A sink of an
	// older exporter has none.
	Configurations map[string]json.RawMessage `json:"configurations,omitempty"`
}

// StreamState is what is saved of one stream.
type StreamState struct {
	ResourceVersion string               `json:"resourceVersion"` // the lowest of the sinks
	Sinks           map[string]SinkState `json:"sinks"`
}

// SinkState is what is saved of one stream for one sink.
type SinkState struct {
	ResourceVersion string        `json:"resourceVersion"`
	Selector        string        `json:"selector,omitempty"`
	Objects         int           `json:"objects"`             // that the sink has, or Uncounted
	Comparing       change.Reason `json:"comparing,omitempty"` // with the cluster, and why
}

// Uncounted is a number of objects that nobody has counted.
const Uncounted = -1

// ReadState reads the document from an open state. To count the objects reads all of them; who does not want that has
// Uncounted where there are any.
func ReadState(store *checkpoint.Store, counts bool) (*State, error) {
	cluster, _, err1 := store.Cluster()
	clusters, err2 := store.Clusters()
	streams, err3 := SavedStreams(store)
	places, err4 := store.Places()
	marks, err5 := store.Marks()
	configurations, err6 := store.Configurations()
	owed, err7 := ReadOwed(store)
	if err := cmp.Or(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return nil, err
	}
	state := &State{
		Cluster: cluster.Name, ClusterUID: cluster.UID, Clusters: clusters, Streams: map[string]StreamState{}, Marks: map[string]string{},
		Owed: owed, Configurations: map[string]json.RawMessage{},
	}
	for name, mark := range marks {
		state.Marks[name] = string(mark)
	}
	for name, text := range configurations {
		state.Configurations[name] = text
	}
	count := store.CountRows
	if !counts {
		count = func(sink, resource string, scope checkpoint.Scope) (int, error) {
			has, err := store.HasRows(sink, resource, scope)
			if has {
				return Uncounted, err
			}
			return 0, err
		}
	}
	for i := range streams {
		s := StreamState{Sinks: map[string]SinkState{}}
		resource, scope := streams[i].Resource.String(), checkpoint.ScopeOf(&streams[i])
		for _, name := range slices.Sorted(maps.Keys(places)) {
			found, is := readSink(places[name][resource], scope)
			if !is {
				continue
			}
			var err error
			if found.Objects, err = count(name, resource, scope); err != nil {
				return nil, err
			}
			if s.Sinks[name] = found; s.ResourceVersion == "" || found.ResourceVersion != "" && change.CompareVersions(found.ResourceVersion, s.ResourceVersion) < 0 {
				s.ResourceVersion = found.ResourceVersion
			}
		}
		state.Streams[streams[i].String()] = s
	}
	return state, nil
}

// readSink reads what is saved in the scope, but for the objects; is is false where that is nothing.
func readSink(of checkpoint.Places, scope checkpoint.Scope) (s SinkState, is bool) {
	of.Each(scope, func(_ string, place checkpoint.Place) {
		if s.Selector, is = place.Selection, true; place.Comparison.UnderWay() {
			s.Comparing = cmp.Or(place.Comparison.Reason, change.Stale)
		}
	})
	if is {
		s.ResourceVersion = of.Lowest(scope).Version
	}
	return s, is
}

// SavedStreams are those that the state knows, in the order of their names. What a sink has of a resource that no
// stream is known of any more counts as one of all namespaces.
func SavedStreams(store *checkpoint.Store) ([]change.Stream, error) {
	streams, err := store.KnownStreams()
	if err != nil {
		return nil, err
	}
	sinks, err := store.KnownSinks()
	if err != nil {
		return nil, err
	}
	for _, name := range sinks {
		resources, err := store.ResourcesOf(name)
		if err != nil {
			return nil, err
		}
		for _, resource := range resources {
			if !slices.ContainsFunc(streams, func(s change.Stream) bool { return s.Resource.String() == resource }) {
				plural, group, _ := strings.Cut(resource, ".")
				streams = append(streams, change.Stream{Resource: change.Resource{Group: group, Name: plural}})
			}
		}
	}
	slices.SortFunc(streams, func(a, b change.Stream) int { return cmp.Compare(a.String(), b.String()) })
	return streams, nil
}

// The states of a snapshot that is owed.
const (
	Waits    = "waits"    // it is not read yet
	Reads    = "reads"    // from the API server
	Delivers = "delivers" // it is read: the sink is given the rest
	Paused   = "paused"
)

// Owed is a full snapshot that a sink is to be given, and has not acknowledged to its end.
type Owed struct {
	ID     string `json:"id,omitempty"` // "" of an earlier version
	Sink   string `json:"sink"`
	Stream string `json:"stream"`
	Reason string `json:"reason"` // one of change.Reason
	// Limits say which objects it is of, where it is not of all.
	Limits change.Limits `json:"limits,omitzero"`
	// State, Objects and Percent are of a running exporter: how many objects were listed, and how many that is of all,
	// nil where nobody knows.
	State   string `json:"state,omitempty"`
	Objects int    `json:"objects,omitempty"`
	Percent *int   `json:"percent,omitempty"`
}

// Stopped is a snapshot that is owed no more, though its sink may have a part of it.
type Stopped struct {
	Owed
	Time time.Time `json:"time"` // by the exporter's clock
}

// ReadOwed reads which snapshots are owed, sorted by sink and stream.
func ReadOwed(store *checkpoint.Store) ([]Owed, error) {
	pendingSnapshots, err := store.PendingSnapshots()
	var owed []Owed
	for i := range pendingSnapshots {
		p := &pendingSnapshots[i]
		one := Owed{ID: p.ID(), Sink: p.Sink, Stream: p.Stream, Reason: string(p.Reason), Limits: p.Limits}
		if p.Paused {
			one.State = Paused
		}
		owed = append(owed, one)
	}
	return owed, err
}
