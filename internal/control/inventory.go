package control

import (
	"iter"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// Query says which objects of the inventory are asked for. Each field that is not "" leaves only the objects that have
// it.
type Query struct {
	Resource  string // as Resolve reads it; several have commas between them
	Namespace string
	Name      string
	UID       string
}

// Object is one object as the sinks have it. It is what the inventory keeps: never the object itself.
type Object struct {
	Stream          string `json:"stream"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"` // that was delivered last
}

// Inventory is what Find needs of checkpoint.Store.
type Inventory interface {
	Lookup(stream string, key change.Key) (change.Entry, bool, error)
	Select(stream string, filter checkpoint.Filter) iter.Seq2[change.Entry, error]
}

// Find yields the objects of the streams that the query asks for, in the order of the streams and then of the keys.
// After an error it yields nothing more. A namespace is read alone, and an object of which both namespace and name are
// known is looked up; anything else reads the streams from end to end, with a fixed amount of memory (I6).
func Find(store Inventory, streams []string, query Query) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, stream := range streams {
			for entry, err := range findIn(store, stream, query) {
				object := Object{stream, entry.Key.Namespace, entry.Key.Name, entry.UID, entry.ResourceVersion}
				if !yield(object, err) || err != nil {
					return
				}
			}
		}
	}
}

func findIn(store Inventory, stream string, query Query) iter.Seq2[change.Entry, error] {
	if query.Namespace != "" && query.Name != "" {
		return lookUp(store, stream, query)
	}
	return func(yield func(change.Entry, error) bool) {
		for entry, err := range store.Select(stream, checkpoint.Filter{Namespace: query.Namespace, UID: query.UID}) {
			if err == nil && query.Name != "" && entry.Key.Name != query.Name {
				continue
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

func lookUp(store Inventory, stream string, query Query) iter.Seq2[change.Entry, error] {
	return func(yield func(change.Entry, error) bool) {
		entry, found, err := store.Lookup(stream, change.Key{Namespace: query.Namespace, Name: query.Name})
		if err != nil || found && (query.UID == "" || query.UID == entry.UID) {
			yield(entry, err)
		}
	}
}
