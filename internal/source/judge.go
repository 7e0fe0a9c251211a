package source

import "github.com/kubecdc/kubecdc/internal/change"

// verdict is what a snapshot beside the watch does about a listed object.
type verdict byte

const (
	unchanged verdict = iota // it was told at this version: sinks that are owed it get it
	outdated                 // something newer was told, or it is told to be gone
	ahead                    // the watch will bring it
	drift                    // the watch should have told it
	another                  // and of the object that had the key before, that it is gone
)

// listing is a listed object, and what is known of it.
type listing struct {
	uid, version string
	list         string // the version of the list; the list may be newer
	position     string // the version up to which the watch was told
	last         change.Entry
	exists       bool   // last is something
	deleted      string // the version at which its key was told to be gone, "" where it was not
}

// judge is pure. A resourceVersion orders all states of a resource, so the version of a state, that of the list, the
// position of the watch and what was told last say everything: no watermark is needed, as it is for databases (DBLog).
func (l *listing) judge() verdict {
	after := func(version, than string) bool { return change.CompareVersions(version, than) > 0 }
	switch {
	case after(l.version, l.position):
		return ahead
	case l.exists && after(l.last.ResourceVersion, l.list), !l.exists && after(l.deleted, l.list):
		return outdated
	case !l.exists:
		return drift
	case l.last.UID != l.uid:
		return another
	case l.last.ResourceVersion == l.version:
		return unchanged
	}
	return drift
}
