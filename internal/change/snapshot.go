package change

import "time"

// Reason says why a reconcile ran, or, of Policy, why a gap stands alone.
type Reason string

// The reasons; Gone, Redefined, Removed, Stale, Epoch, Lost and Absent come with a gap.
const (
	Initial   Reason = "initial"   // a fresh state
	Gone      Reason = "gone"      // the API server no longer has the position (HTTP 410)
	Redefined Reason = "redefined" // as Gone, because the definition of the custom resource was changed
	Removed   Reason = "removed"   // the definition of the custom resource was deleted: the stream ends
	Stale     Reason = "stale"     // the watch cannot be continued from the position, or the selection changed
	Resync    Reason = "resync"    // the period that a sink asked for is over
	Requested Reason = "requested" // somebody asked for it
	Epoch     Reason = "epoch"     // another cluster, or an etcd restored to the past
	NewSink   Reason = "newsink"   // a sink is new, or takes the stream for the first time
	Lost      Reason = "lost"      // a sink's log lost what it had acknowledged
	Absent    Reason = "absent"    // a sink failed for good, was not configured, did not take the stream, or had no schema of it, for a while
	Drift     Reason = "drift"     // another sink's full snapshot found what no watch had told
	Policy    Reason = "policy"    // a sink will never take the record; a gap of this reason stands in its place
)

// Reasons are all of them.
func Reasons() []Reason {
	return []Reason{Initial, Gone, Redefined, Removed, Stale, Resync, Requested, Epoch, NewSink, Lost, Absent, Drift, Policy}
}

// Gap says whether changes may be missing between the last record before a reconcile of this reason and its begin.
func (r Reason) Gap() bool {
	return r.Forgotten() || r == Removed || r == Stale || r == Epoch || r == Lost || r == Absent
}

// Forgotten says whether the API server lacks what was between two versions of one history.
func (r Reason) Forgotten() bool { return r == Gone || r == Redefined }

// Full says whether a reconcile of this reason is a full snapshot for the sinks that it names: it is read beside the
// watch, and gives them the unchanged objects, too.
func (r Reason) Full() bool {
	return r == Resync || r == Requested || r == NewSink || r == Lost || r == Absent
}

// Beside says whether a reconcile of this reason is read beside the watch, which goes on. One of another history is
// not: its versions say nothing of what was told before. Nor is one of a resource that is no more: there is no watch.
func (r Reason) Beside() bool { return r != Epoch && r != Removed }

// Owed is a full snapshot of one stream that one sink is to be given.
type Owed struct {
	Sink   string
	Reason Reason
	// Limits say which objects it is of, where it is not of all.
	Limits Limits
	// Generation tells a pending snapshot from the same one that was noted again: the snapshot of an older generation
	// does not pay it, because what is owed now may concern what that snapshot has passed.
	Generation uint64
}

// Snapshot is one run of the reconcile function. Its records share the pointer; the counts are final when the
// SnapshotEnd record is made, and are read from that record only.
type Snapshot struct {
	// ID tells the runs of one stream apart. It is the resourceVersion of the list and, after a dot, the time of the
	// run in milliseconds since 1970, both decimal.
	ID     string
	Reason Reason
	// From is the stream's position before the run, "" for a fresh state and its initial snapshot.
	From string
	// Since is when the exporter last heard of the stream before the run; zero where that was in an earlier life.
	Since time.Time
	// ResourceVersion of the list.
	ResourceVersion string
	// Epoch is the uid of the cluster that was listed.
	Epoch string
	// Sinks are the ones that a full snapshot is for; nil is all.
	Sinks []string
	// Limits say which objects it is of, where it is not of all.
	Limits Limits `json:",omitzero"`
	Counts Counts
}

// Counts says what a reconcile emitted.
type Counts struct {
	Replaced int `json:"replaced"`
	Deleted  int `json:"deleted"`
	Synced   int `json:"synced"`
}

// GapError is what cannot be proven to be delivered (I4): states of objects between two versions of a stream. The
// reconcile that follows it brings the sinks to the later version; only what was between may be missing.
type GapError struct {
	Reason Reason
	// Sinks are the ones that may have missed something; nil is all.
	Sinks []string
	// Delivered is the resourceVersion that was delivered last, "" where nothing was.
	Delivered string
	// Proven is the resourceVersion from which on everything is delivered again.
	Proven string
	// Since is when the stream was last known to be whole; zero is not known.
	Since time.Time
}

func (g *GapError) Error() string {
	return "changes between resourceVersions " + g.Delivered + " and " + g.Proven + " may be missing: " + string(g.Reason)
}

// Gap is the one that the reconcile mends, nil where nothing can be missing: between two equal versions of one history
// nothing happened.
func (s *Snapshot) Gap() *GapError {
	if !s.Reason.Gap() || s.Reason.Forgotten() && s.From == s.ResourceVersion {
		return nil
	}
	return &GapError{Reason: s.Reason, Sinks: s.Sinks, Delivered: s.From, Proven: s.ResourceVersion, Since: s.Since}
}

// Correction is one difference that a full snapshot found although the watch had passed it: no watch told of it
// (drift).
type Correction struct {
	Op  Op // Replaced or Deleted
	Key Key
	// UID and Version of the object as the server has it, "" where it has none.
	UID, Version string
	// Had and HadVersion are uid and version that were delivered last, "" where none was.
	Had, HadVersion string
	Reason          Reason
}
