package change

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

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

// String is the stream's name in logs, in the store's keys and on /statusz: "pods", "deployments.apps", "shop/secrets".
// It contains the group, so events and events.events.k8s.io never share a position. It leaves the version out, so a
// move from v1beta1 to v1 keeps the position.
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

// Image is an object as some sinks were told of it last.
type Image struct {
	UID     string
	Version string
	Object  []byte
	Sinks   []string // their names
}

// Images are the images of one object, the newest first.
type Images []Image

// Of is the image that the sink was told last; the zero value if that is not known.
func (all Images) Of(sinkName string) Image {
	for _, image := range all {
		if slices.Contains(image.Sinks, sinkName) {
			return image
		}
	}
	return Image{}
}

// Tell makes the image the one that its sinks were told last. An image without an Object makes that unknown.
func (all Images) Tell(told Image) Images {
	var left Images
	for _, image := range all {
		isSame := image.Version == told.Version && told.Object != nil
		image.Sinks = slices.DeleteFunc(slices.Clone(image.Sinks), func(name string) bool { return slices.Contains(told.Sinks, name) })
		if isSame {
			told.Sinks = append(slices.Clip(told.Sinks), image.Sinks...)
		} else if len(image.Sinks) > 0 {
			left = append(left, image)
		}
	}
	if told.Object == nil {
		return left
	}
	at := slices.IndexFunc(left, func(image Image) bool { return CompareVersions(image.Version, told.Version) < 0 })
	if at < 0 {
		at = len(left)
	}
	return slices.Insert(left, at, told)
}

// Actors is the stream of the records that say who asked for a change. No source reads it, and it has no position: an
// API server sends a batch of audit events until it is accepted, and never after that. No resource can have its name:
// the core group has no custom resources.
//
// A record's Key is that of the object, UID a hash of the content, ResourceVersion the version of the state, "" for a
// delete, and Object has the attributes and the data of the CloudEvent. Each record is for one Sink.
func Actors() Stream { return Stream{Resource: Resource{Version: "v1", Name: "actors", Kind: "Actor"}} }

// IsActors says whether the stream is Actors.
func (s *Stream) IsActors() bool { return s.Resource.Name == "actors" && s.Resource.Group == "" }

// Reason says why a comparison ran. Policy is the reason of a gap without one.
type Reason string

// The reasons. Gone, Redefined, Removed, Epoch, Lost and Left come with a gap, and Stale may.
const (
	Initial   Reason = "initial"   // the sink has no position, or new namespaces were configured
	Gone      Reason = "gone"      // the API server no longer has the position (HTTP 410)
	Redefined Reason = "redefined" // as Gone, because the definition of the custom resource was changed
	Removed   Reason = "removed"   // the definition of the custom resource was deleted: the stream ends
	Stale     Reason = "stale"     // the watch cannot continue from the position, or the selection changed
	Resync    Reason = "resync"    // the sink's resync period has passed
	Requested Reason = "requested" // somebody asked for it
	Epoch     Reason = "epoch"     // another cluster, or an etcd restored to the past
	Lost      Reason = "lost"      // the sink's log lost what it had acknowledged
	Left      Reason = "left"      // the sink no longer gets the resource or the namespace
	Drift     Reason = "drift"     // another sink's full snapshot found a difference that no watch had brought
	Policy    Reason = "policy"    // a sink will never take the record; a gap of this reason stands in its place
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{Initial, Gone, Redefined, Removed, Stale, Resync, Requested, Epoch, Lost, Left, Drift, Policy}
}

// Gap says whether changes may be missing between the last record before a comparison of this reason and its begin.
func (r Reason) Gap() bool {
	return r.Forgotten() || r == Removed || r == Stale || r == Epoch || r == Lost || r == Left
}

// Forgotten says whether the API server no longer has the changes between two versions of one history.
func (r Reason) Forgotten() bool { return r == Gone || r == Redefined }

// Full says whether a comparison of this reason is a full snapshot, which sends the unchanged objects, too.
func (r Reason) Full() bool {
	return r == Resync || r == Requested || r == Lost
}

// Beside says whether the watch goes on beside a comparison of this reason, and continues what was told before. In
// another history it does not: versions of two histories cannot be compared. A removed resource has no watch.
func (r Reason) Beside() bool { return r != Epoch && r != Removed }

// Owed is a full snapshot of one stream that is owed to one sink.
type Owed struct {
	Sink   string
	Reason Reason
	// Limits choose the objects; the zero value is all.
	Limits Limits
	// Generation rises when the same snapshot is requested again. The end of a snapshot of an older generation does not
	// settle the new request, which may be about objects that it had already passed.
	Generation uint64
}

// Snapshot is one comparison. Its records may share the pointer. Counts are read from the SnapshotEnd record only.
type Snapshot struct {
	// ID tells the comparisons of one sink apart. It is a resourceVersion, a dot and a rising number, as a rule the
	// time in milliseconds since 1970, both decimal, and a suffix of package checkpoint for its kind. A note has the
	// version alone.
	ID     string
	Reason Reason
	// From is the position before the comparison, "" if there was none.
	From string
	// Since is when the exporter last heard of the stream before the comparison; zero if not in this life.
	Since time.Time
	// ResourceVersion of the list.
	ResourceVersion string
	// Epoch is the uid of the cluster that was listed.
	Epoch string
	// Sinks has the name of the sink that is compared. It may be nil in a gap without a comparison.
	Sinks []string
	// Limits choose the objects; the zero value is all.
	Limits Limits `json:",omitzero"`
	Counts Counts
}

// Counts are the records that a comparison emitted.
type Counts struct {
	Replaced int `json:"replaced"`
	Deleted  int `json:"deleted"`
	Synced   int `json:"synced"`
}

// IsGap says whether states of objects after From, up to the version of the list, may be missing (I4). The comparison
// brings the sink to that version; only what was in between may be lost. Nothing happened between two equal versions of
// one history.
func (s *Snapshot) IsGap() bool {
	return s.Reason.Gap() && !(s.Reason.Forgotten() && s.From == s.ResourceVersion)
}

// Correction is one difference that a full snapshot found and the watch should have brought (drift).
type Correction struct {
	Op  Op // Replaced or Deleted
	Key Key
	// UID and Version of the object as the server has it, "" if it has none.
	UID, Version string
	// Had and HadVersion are the uid and the version that were delivered last, "" if none was.
	Had, HadVersion string
	Reason          Reason
}

// Limits choose the objects of a requested snapshot; the zero value is all. It lists no others, and reports no others
// as gone.
type Limits struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Selector  string `json:"selector,omitempty"` // of labels
}

// String is the limits in words, "" for all.
func (l Limits) String() string {
	var parts []string
	for _, part := range [][2]string{{"namespace ", l.Namespace}, {"name ", l.Name}, {"labels ", l.Selector}} {
		if part[1] != "" {
			parts = append(parts, part[0]+part[1])
		}
	}
	return strings.Join(parts, ", ")
}

// Reach says whether the stream may contain objects within the limits.
func (l Limits) Reach(s *Stream) bool {
	return l.Namespace == "" || !s.Resource.ClusterScoped && (s.Namespace == "" || s.Namespace == l.Namespace)
}

// Op is what happened. The first six keep the names that client-go's tools/cache gives its delta types.
type Op uint8

const (
	Added         Op = iota + 1 // the watch said ADDED
	Updated                     // the watch said MODIFIED
	Deleted                     // the watch said DELETED, or a comparison found the object gone
	Replaced                    // a comparison found the object new or changed
	Sync                        // the object as it is, sent again because a full snapshot was asked for
	Bookmark                    // the stream's position moved; never written to a sink
	SnapshotBegin               // a comparison starts
	SnapshotEnd                 // a comparison is complete
	Gap                         // changes between two positions cannot be proven to be delivered
	Actor                       // who asked for a change, as the API server's audit says
	Resolved                    // every change of the stream up to the version came before
)

// String is the operation's name on the wire: "added", "snapshot.begin".
func (o Op) String() string {
	switch o {
	case Added:
		return "added"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	case Replaced:
		return "replaced"
	case Sync:
		return "sync"
	case Bookmark:
		return "bookmark"
	case SnapshotBegin:
		return "snapshot.begin"
	case SnapshotEnd:
		return "snapshot.end"
	case Gap:
		return "gap"
	case Actor:
		return "actor"
	case Resolved:
		return "resolved"
	}
	return "unknown"
}

// ParseOp is the inverse of Op.String; it returns 0 for a name that is none.
func ParseOp(name string) Op {
	for op := Added; op <= Resolved; op++ {
		if op.String() == name {
			return op
		}
	}
	return 0
}

// OfObject says whether a record of this operation is a state of one object, or its delete.
func (o Op) OfObject() bool { return o >= Added && o <= Sync }

// IsFrame says whether a record of this operation is about the records around it: a snapshot's begin or end, a gap,
// Resolved.
func (o Op) IsFrame() bool { return o >= SnapshotBegin && o <= Gap || o == Resolved }

// CompareVersions orders two resourceVersions of one resource: negative, zero or positive as a is older than, the same
// as, or newer than b. Both are decimal numbers without leading zeros (KEP-5504); "" is older than all. They are
// compared as text, so none is too large.
func CompareVersions(a, b string) int {
	return cmp.Or(len(a)-len(b), strings.Compare(a, b))
}

// IsVersion says whether v can be ordered: a positive decimal number of any length, without leading zeros (KEP-5504).
func IsVersion(v string) bool {
	for i := range len(v) {
		if v[i] < '0' || v[i] > '9' {
			return false
		}
	}
	return v != "" && v[0] != '0'
}

// VersionBelow is the resourceVersion directly before v: a watch from there sees everything at v again. It returns v
// itself if v is no version or is 1, since a watch from 0 begins with a list.
func VersionBelow(v string) string {
	if !IsVersion(v) || v == "1" {
		return v
	}
	below := []byte(v)
	last := len(below) - 1
	for ; below[last] == '0'; last-- {
		below[last] = '9'
	}
	below[last]--
	return strings.TrimPrefix(string(below), "0")
}

// VersionAbove is the resourceVersion directly after v.
func VersionAbove(v string) string {
	above := []byte(v)
	for at := len(above) - 1; at >= 0; at-- {
		if above[at] != '9' {
			above[at]++
			return string(above)
		}
		above[at] = '0'
	}
	return "1" + string(above)
}
