package verify

import (
	"cmp"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

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
	for key, listed := range list.Objects {
		h, known := objects[key]
		r.judgeListed(key, listed, h, known && l.exists(resource, key, h), list.Version)
	}
	for key, h := range objects {
		_, there := list.Objects[key]
		ofIt := list.Stream.Namespace == "" || list.Stream.Namespace == key.Namespace
		if there || !ofIt || !l.exists(resource, key, h) {
			continue
		}
		r.judgeUnlisted(key, h, list)
	}
	for at, h := range l.rows[resource] {
		ofIt := list.Stream.Namespace == "" || list.Stream.Namespace == h.object.Namespace
		if ofIt && objects[h.object].row != at {
			r.judgeOldRow(h, list.Version)
		}
	}
	slices.SortFunc(r.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Key().String(), b.Key().String()), cmp.Compare(a.Place, b.Place))
	})
	return r
}

func (r *Result) judgeListed(key change.Key, listed Listed, h held, exists bool, version string) {
	switch {
	case exists && h.version == listed.Version && h.uid == listed.UID:
		r.Equal++
	case change.CompareVersions(h.version, version) > 0:
		r.Changing++
	case listed.Optional, listed.Behind && exists && h.uid == listed.UID:
		r.Unjudged++
	case !exists:
		r.Missing++
		r.add(Missing, key, listed, held{})
	default:
		r.Stale++
		r.add(Stale, key, listed, h)
	}
}

func (r *Result) judgeUnlisted(key change.Key, h held, list *List) {
	switch {
	case change.CompareVersions(h.version, list.Version) > 0:
		r.Changing++
	case !list.Deletes:
		r.Unjudged++
	default:
		r.Extra++
		r.add(Extra, key, Listed{}, h)
	}
}

// judgeOldRow is of a key in a table that consumers take for an object more.
func (r *Result) judgeOldRow(h held, version string) {
	if change.CompareVersions(h.version, version) > 0 {
		r.Changing++
		return
	}
	r.Extra++
	r.add(Extra, h.object, Listed{}, h)
	r.Differences[len(r.Differences)-1].Place = h.row
}

func (r *Result) add(kind Kind, key change.Key, listed Listed, h held) {
	r.Differences = append(r.Differences, Difference{
		Kind: kind, Stream: r.Stream, Namespace: key.Namespace, Name: key.Name,
		ClusterUID: listed.UID, ClusterVersion: listed.Version, SinkUID: h.uid, SinkVersion: h.version,
	})
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
		switch d.Kind {
		case Missing:
			kept.Missing++
		case Stale:
			kept.Stale++
		case Extra:
			kept.Extra++
		}
	}
	return kept
}
