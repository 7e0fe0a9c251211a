package change

import "strings"

// Resource names one kind of object as the API server serves it. It is comparable and never changes once resolved.
type Resource struct {
	Group         string // "" is the core group
	Version       string // the served version that is watched, such as "v1"
	Name          string // plural, lower case: "pods", "deployments"
	Kind          string // "Pod", "Deployment"
	ClusterScoped bool
}

// String is kubectl's form: "pods", "deployments.apps".
func (r Resource) String() string {
	if r.Group == "" {
		return r.Name
	}
	return r.Name + "." + r.Group
}

// AppendString appends String to dst.
func (r Resource) AppendString(dst []byte) []byte {
	dst = append(dst, r.Name...)
	if r.Group == "" {
		return dst
	}
	return append(append(dst, '.'), r.Group...)
}

// APIVersion is the apiVersion that objects of the resource carry: "v1", "apps/v1".
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Path is the path of the resource's collection on the API server, in one namespace or, with "", in all:
// "/api/v1/namespaces/shop/pods", "/apis/apps/v1/deployments".
func (r Resource) Path(namespace string) string { return string(r.AppendPath(nil, namespace)) }

// AppendPath appends Path to dst.
func (r Resource) AppendPath(dst []byte, namespace string) []byte {
	if r.Group == "" {
		dst = append(dst, "/api/"...)
	} else {
		dst = append(append(append(dst, "/apis/"...), r.Group...), '/')
	}
	dst = append(dst, r.Version...)
	if namespace != "" {
		dst = append(append(dst, "/namespaces/"...), namespace...)
	}
	return append(append(dst, '/'), r.Name...)
}

// Stream is one ordered sequence of changes: one resource of one cluster, in one namespace or in all of them.
// A resourceVersion means something only within its stream's resource, so positions are a resource's.
type Stream struct {
	Resource  Resource
	Namespace string // "" is all namespaces, or a cluster-scoped resource
}

// String is the stream's name in logs, in the store's keys and on /statusz: "pods", "deployments.apps",
// "shop/secrets". It has the group in it, so that events and events.events.k8s.io never share a position, and it
// leaves the version out, so that moving from v1beta1 to v1 keeps the position.
func (s Stream) String() string {
	if s.Namespace == "" {
		return s.Resource.String()
	}
	return s.Namespace + "/" + s.Resource.String()
}

// AppendString appends String to dst.
func (s Stream) AppendString(dst []byte) []byte {
	if s.Namespace != "" {
		dst = append(append(dst, s.Namespace...), '/')
	}
	return s.Resource.AppendString(dst)
}

// Key names one object within its resource. Its order is the API server's list order: bytewise by the joined string,
// in which '-' and '.' sort below '/'.
type Key struct {
	Namespace string // "" for a cluster-scoped object
	Name      string
}

// String joins the key: "namespace/name", or "name" for a cluster-scoped object.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// AppendString appends String to dst.
func (k Key) AppendString(dst []byte) []byte {
	if k.Namespace != "" {
		dst = append(append(dst, k.Namespace...), '/')
	}
	return append(dst, k.Name...)
}

// ParseKey is the inverse of Key.String. Neither part of a key can hold a slash (apimachinery,
// IsValidPathSegmentName).
func ParseKey(joined string) Key {
	namespace, name, found := strings.Cut(joined, "/")
	if !found {
		return Key{Name: joined}
	}
	return Key{Namespace: namespace, Name: name}
}

// Image is an object as it was delivered last.
type Image struct {
	UID     string
	Version string // "" where an earlier version has kept it
	Object  []byte
}
