package control

import (
	"iter"
	"slices"
	"strings"

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
	Sink      string
}

// fields are those of a question by HTTP.
func (q *Query) fields() map[string]*string {
	return map[string]*string{"resource": &q.Resource, "namespace": &q.Namespace, "name": &q.Name, "uid": &q.UID, "sink": &q.Sink}
}

// Object is one object as sinks have it. It is what the inventory keeps: never the object itself.
type Object struct {
	Stream          string   `json:"stream"`
	Namespace       string   `json:"namespace,omitempty"`
	Name            string   `json:"name"`
	UID             string   `json:"uid"`
	ResourceVersion string   `json:"resourceVersion"` // that was delivered last
	Sinks           []string `json:"sinks"`           // that have it so
}

// Find yields the objects of the streams that the query asks for, in the order of the streams and then of the keys,
// once for all sinks that have them alike. After an error it yields nothing more. A namespace is read alone; anything
// else reads the streams from end to end, with a fixed amount of memory (I6).
func Find(store *checkpoint.Store, sinks, streams []string, query Query) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for _, stream := range streams {
			in := query
			if namespace := stream[:max(0, strings.LastIndex(stream, "/"))]; namespace != "" {
				if query.Namespace != "" && query.Namespace != namespace {
					continue
				}
				in.Namespace = namespace
			}
			isAskedFor := func(o *checkpoint.SinkObject) bool {
				return (query.Name == "" || query.Name == o.Of.Key.Name) && (query.UID == "" || query.UID == o.UID)
			}
			for object, err := range alike(stream, store.Select(sinks, resourceOf(stream), in.Namespace, isAskedFor)) {
				if err == nil && in.Namespace == "" && slices.Contains(streams, object.Namespace+"/"+stream) {
					continue // it is of that one
				}
				if !yield(object, err) || err != nil {
					return
				}
			}
		}
	}
}

// alike makes one object of rows of one key that are the same.
func alike(stream string, rows iter.Seq2[checkpoint.SinkRow, error]) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		var key change.Key
		var same []Object
		flush := func() bool {
			for _, object := range same {
				if !yield(object, nil) {
					return false
				}
			}
			same = same[:0]
			return true
		}
		for row, err := range rows {
			if err != nil {
				if flush() {
					yield(Object{}, err)
				}
				return
			}
			if row.Of.Key != key && !flush() {
				return
			}
			key = row.Of.Key
			at := slices.IndexFunc(same, func(o Object) bool { return o.UID == row.UID && o.ResourceVersion == row.At.Version })
			if at < 0 {
				at, same = len(same), append(same, Object{stream, key.Namespace, key.Name, row.UID, row.At.Version, nil})
			}
			same[at].Sinks = append(same[at].Sinks, row.Sink)
		}
		flush()
	}
}

// resourceOf is the resource of a stream: that of "shop/secrets" is "secrets".
func resourceOf(stream string) string { return stream[strings.LastIndex(stream, "/")+1:] }
