package change

import "strings"

// CompareVersions orders two resourceVersions of one stream: negative, zero or positive as a is older than, the same
// as, or newer than b. Both are decimal numbers without leading zeros (KEP-5504); "" is older than all. They are
// compared as text, so that no width overflows.
func CompareVersions(a, b string) int {
	switch {
	case len(a) != len(b):
		return len(a) - len(b)
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
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

// VersionBelow is the resourceVersion directly before v, from which a watch sees everything at v again. It returns
// v itself where v is no such version, or 1: a watch from 0 is a list.
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

// Position is how far a stream is known to be delivered: "up to where is it safe to forget?"
type Position struct {
	// ResourceVersion of the last record. "" is a stream that never finished its initial snapshot.
	ResourceVersion string
	// Complete says that nothing else can come at ResourceVersion, because a bookmark, a list or a later version
	// proved it. Without it, other records may share the version (expired Events do: one etcd transaction deletes
	// many), and a watch must resume one below.
	Complete bool
	// Epoch is the history whose versions these are, as of NewEpoch; under another one the version means nothing.
	Epoch string
	// Selector is the selection that the position was reached with; with another one the stream needs a reconcile.
	Selector string
}

// notConfigured is or precedes the selector of a position whose stream the configuration does not have any more.
const notConfigured = "(not configured)"

// ResumeVersion is the resourceVersion at which a watch continues without missing anything.
func (p Position) ResumeVersion() string {
	if p.Complete {
		return p.ResourceVersion
	}
	return VersionBelow(p.ResourceVersion)
}

// Interrupted is the selector, and in a new epoch the epoch, of a position whose stream is being reconciled: the
// inventory may be partly ahead of it, so that nothing is true of the position any more. A stream that is found so
// needs a reconcile.
const Interrupted = "(interrupted)"

// These precede the selector of a position while a comparison is read beside the watch: the initial snapshot, or
// another one for all sinks.
const (
	initial  = "(initial)"
	compared = "(compared)"
)

// InitialPosition is that of a stream whose initial snapshot is under way. It is saved before anything is told of the
// snapshot, and moves with the watch, so that whoever continues it, after whatever interruption, misses nothing. How
// much of the list the sinks have, the inventory says.
func InitialPosition(version, epoch, selector string) Position {
	return Position{ResourceVersion: version, Complete: true, Epoch: epoch, Selector: initial + selector}
}

// ComparedPosition is that of a stream whose objects are compared after a gap. It is InitialPosition otherwise.
func ComparedPosition(version, epoch, selector string) Position {
	return Position{ResourceVersion: version, Complete: true, Epoch: epoch, Selector: compared + selector}
}

// Initial says whether the initial snapshot is under way: of what the position says, the sinks have a part.
func (p Position) Initial() bool { return strings.HasPrefix(p.configured(), initial) }

// Compared says whether the stream is being compared beside the watch: of what is older than the position, the
// inventory has a part.
func (p Position) Compared() bool { return p.Initial() || strings.HasPrefix(p.configured(), compared) }

// UnderWay says whether a reconcile is under way, or was cut off: the inventory is not that of the position.
func (p Position) UnderWay() bool { return p.Compared() || p.configured() == Interrupted }

// GoesOn says whether a comparison of the selection is under way that can be gone on with, beside a watch from the
// position.
func (p Position) GoesOn(selector string) bool {
	return p.Selector == initial+selector || p.Selector == compared+selector
}

// Configured says whether the configuration had the stream when the position was saved last.
func (p Position) Configured() bool { return !strings.HasPrefix(p.Selector, notConfigured) }

// Interrupt is the position while a reconcile is under way that no watch goes on beside. It stays known that the
// inventory has a part only of what is older.
func (p Position) Interrupt() Position {
	switch {
	case p.Initial():
		p.Selector = initial + Interrupted
	case p.Compared():
		p.Selector = compared + Interrupted
	default:
		p.Selector = Interrupted
	}
	return p
}

// Leave is the position of a stream that the configuration has no more: when it comes back, it needs a reconcile. What
// was under way stays known.
func (p Position) Leave() Position {
	switch {
	case !p.Configured():
	case p.UnderWay():
		p.Selector = notConfigured + p.Selector
	default:
		p.Selector = notConfigured
	}
	return p
}

// configured is the selector from before the stream left the configuration.
func (p Position) configured() string { return strings.TrimPrefix(p.Selector, notConfigured) }

// VersionAbove is the one above a resourceVersion.
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
