package delivery

import (
	"strconv"

	"github.com/kubecdc/kubecdc/internal/change"
)

const clusterUID = "0b6f3c1e-8a4d-4c39-9d2b-0a1b2c3d4e5f"

func pods() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

// update is a record of the watch.
func update(stream change.Stream, name string, version int) *change.Record {
	text := strconv.Itoa(version)
	return &change.Record{
		Stream: &stream, Op: change.Updated, Key: change.Key{Namespace: "n", Name: name}, UID: "uid-" + name, ResourceVersion: text,
		Position: change.Position{ResourceVersion: text},
	}
}
