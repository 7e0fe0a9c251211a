package control

import (
	"time"

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
	Absent   []Absent               `json:"absent,omitempty"`
}

// Absent is a stream that a sink misses, and what is kept for the day when it is back.
type Absent struct {
	Sink   string    `json:"sink"`
	Stream string    `json:"stream"`
	Since  time.Time `json:"since"`
}

// StreamState is what is saved of one stream.
type StreamState struct {
	ResourceVersion string `json:"resourceVersion"`
	Complete        bool   `json:"complete"`
	Selector        string `json:"selector,omitempty"`
	Objects         int    `json:"objects"` // in the inventory
}

// ReadState reads the document from an open state. It counts the inventory, which reads all of it.
func ReadState(store *checkpoint.Store) (*State, error) {
	cluster, _, err := store.Cluster()
	if err != nil {
		return nil, err
	}
	state := &State{Cluster: cluster.Name, ClusterUID: cluster.UID, Streams: map[string]StreamState{}, Marks: map[string]string{}}
	positions, err := store.Positions()
	if err != nil {
		return nil, err
	}
	streams, err := store.Streams()
	if err != nil {
		return nil, err
	}
	for _, name := range streams {
		objects, err := store.Count(name)
		if err != nil {
			return nil, err
		}
		p := positions[name]
		state.Streams[name] = StreamState{p.ResourceVersion, p.Complete, p.Selector, objects}
	}
	if state.Clusters, err = store.Clusters(); err != nil {
		return nil, err
	}
	marks, err := store.Marks()
	if err != nil {
		return nil, err
	}
	for name, mark := range marks {
		state.Marks[name] = string(mark)
	}
	absences, err := store.Absences()
	if err != nil {
		return nil, err
	}
	for _, a := range absences {
		state.Absent = append(state.Absent, Absent{Sink: a.Sink, Stream: a.Stream, Since: a.Since.UTC()})
	}
	state.Owed, err = ReadOwed(store)
	return state, err
}
