package change

import (
	"errors"
	"net/url"
	"strings"
)

// ID identifies an event on the wire. It is a pure function of epoch, resource, object and version (I8), so that a
// replay carries the id that the first sending carried, and it can be read back, so that a sink's own log tells what a
// crash left undone.
//
// Its text is "cluster/resource/namespace/name/uid/resourceVersion/op" and, for sync and for the records that frame a
// reconcile, "/snapshot". Namespace, name and uid may be empty. Bytes outside printable ASCII, and space, '"', '%' and
// '\', are percent-encoded, so an id needs no escaping in JSON and in headers.
type ID struct {
	// the first eight characters of the uid of namespace kube-system, and the history's name, where it has one
	Cluster         string
	Resource        string // kubectl's form
	Key             Key
	UID             string
	ResourceVersion string
	Op              Op
	Snapshot        string
}

// ID is the record's identity in its epoch or, where it has none, in the first history of the cluster whose kube-system
// namespace has the uid.
func (r *Record) ID(clusterUID string) ID {
	id := r.idInResource()
	id.Cluster, id.Resource = clusterOfID(r.epochOr(clusterUID)), r.Stream.Resource.String()
	return id
}

// AppendID appends the text of the record's ID to dst, and allocates nothing else.
func (r *Record) AppendID(dst []byte, clusterUID string) []byte {
	dst = append(appendClusterOfID(dst, r.epochOr(clusterUID)), '/')
	return r.idInResource().appendInResource(r.Stream.Resource.AppendString(dst))
}

func (r *Record) epochOr(clusterUID string) string {
	if r.Epoch != "" {
		return r.Epoch
	}
	return clusterUID
}

// idInResource is the record's ID without its cluster and its resource.
func (r *Record) idInResource() ID {
	id := ID{
		Key:             r.Key,
		UID:             r.UID,
		ResourceVersion: r.ResourceVersion,
		Op:              r.Op,
	}
	if r.Key.Name == "" && r.Key.Namespace == "" { // it speaks of the stream
		id.Key.Namespace = r.Stream.Namespace
	}
	if r.Snapshot != nil && (r.Op == Sync || !r.Op.OfObject()) {
		id.Snapshot = r.Snapshot.ID
	}
	return id
}

// String is the id's text on the wire.
func (id ID) String() string { return string(id.Append(make([]byte, 0, 128))) }

// Append appends the id's text to dst.
func (id ID) Append(dst []byte) []byte {
	dst = append(dst, id.Cluster...)
	return id.appendInResource(append(append(dst, '/'), id.Resource...))
}

// appendInResource appends what comes after the resource.
func (id ID) appendInResource(dst []byte) []byte {
	dst = appendEscaped(append(dst, '/'), id.Key.Namespace)
	dst = appendEscaped(append(dst, '/'), id.Key.Name)
	dst = appendEscaped(append(dst, '/'), id.UID)
	dst = appendEscaped(append(dst, '/'), id.ResourceVersion)
	dst = append(append(dst, '/'), id.Op.String()...)
	if id.Snapshot != "" {
		dst = append(append(dst, '/'), id.Snapshot...)
	}
	return dst
}

func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789ABCDEF"
	done := 0
	for i := range len(s) {
		if c := s[i]; escapes[c] {
			dst = append(append(dst, s[done:i]...), '%', hex[c>>4], hex[c&15])
			done = i + 1
		}
	}
	return append(dst, s[done:]...)
}

// escapes are the bytes that an id has percent-encoded.
var escapes = escapedBytes()

func escapedBytes() (is [256]bool) {
	for c := range is {
		is[c] = c <= ' ' || c >= 0x7f || c == '"' || c == '%' || c == '\\' || c == '/'
	}
	return is
}

// ErrForeignID is a text that is no id of ours.
var ErrForeignID = errors.New("not an id that kubecdc wrote")

// ParseID is the inverse of ID.String. It returns ErrForeignID for any other text, and for the id of an actor: that
// says nothing of what a log has of an object.
func ParseID(text string) (ID, error) {
	id, err := ParseAnyID(text)
	if err == nil && id.Op == Actor {
		return ID{}, ErrForeignID
	}
	return id, err
}

// ParseAnyID is ParseID that also takes the id of an actor.
func ParseAnyID(text string) (ID, error) {
	part := strings.Split(text, "/")
	if len(part) != 7 && len(part) != 8 {
		return ID{}, ErrForeignID
	}
	for i := 2; i < 6; i++ {
		unescaped, err := url.PathUnescape(part[i])
		if err != nil {
			return ID{}, ErrForeignID
		}
		part[i] = unescaped
	}
	id := ID{
		Cluster: part[0], Resource: part[1], Key: Key{Namespace: part[2], Name: part[3]},
		UID: part[4], ResourceVersion: part[5], Op: ParseOp(part[6]),
	}
	if id.Op == 0 || id.Resource == "" {
		return ID{}, ErrForeignID
	}
	if len(part) == 8 {
		id.Snapshot = part[7]
	}
	return id, nil
}
