package source

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// proof is the newest record of the stream that went in line: at the position the server has the object so, and in no
// other state, for as long as it is the history that the position was reached in. It is pure. The zero value proves
// nothing.
type proof struct {
	key          change.Key
	uid, version string
	deleted      bool
}

// proofOf is the proof that a record of the watch gives.
func proofOf(rec *change.Record) proof {
	return proof{key: rec.Key, uid: rec.UID, version: rec.ResourceVersion, deleted: rec.Op == change.Deleted}
}

// detached is the proof without the memory that the record shares with others of its list, for streams that are quiet
// then.
func (p proof) detached() proof {
	p.key = change.Key{Namespace: strings.Clone(p.key.Namespace), Name: strings.Clone(p.key.Name)}
	p.uid, p.version = strings.Clone(p.uid), strings.Clone(p.version)
	return p
}

// holds says whether the server has the object as it was told, where found is whether it has any.
func (p proof) holds(object *frame.Object, found bool) bool {
	if p.deleted || !found {
		return p.deleted && !found
	}
	return object.UID == p.uid && object.ResourceVersion == p.version
}
