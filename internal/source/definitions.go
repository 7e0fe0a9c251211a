package source

import "github.com/kubecdc/kubecdc/internal/change"

// Definitions are the CustomResourceDefinitions of a cluster, as etcd has them. That a server does not serve a resource
// proves nothing: it may be one of several of different versions, or not know the definition yet. That the definition
// is gone proves that all objects are.
type Definitions struct {
	Version string // of the list
	byName  map[string]definition
}

// definition is one that exists.
type definition struct {
	version    string // of its last write
	generation int64  // counts the changes of its spec
}

// Generation is that of the resource's definition, false where there is none.
func (d *Definitions) Generation(resource change.Resource) (generation int64, found bool) {
	one, found := d.byName[resource.String()]
	return one.generation, found
}
