package redo

import "github.com/kubecdc/kubecdc/internal/change"

// Taking is how a listener stands when it takes a record.
type Taking struct {
	ClusterUID string
	Old        bool           // the record was saved by an earlier process: what it ends was over before the tail began
	Behind     bool           // records are on disk
	Gone       []change.Entry // sink-only objects that the record proves to be gone

	Frame *change.Snapshot // of the reconcile that the record may belong to, nil where there is none; Log.Take sets it
}
