package telemetry

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// maxCorrections is how many corrections of one reconcile are logged, each with its object.
const maxCorrections = 20

// Reconciling is told that a reconcile starts, and of the gap that made it necessary.
func (t ofStreams) Reconciling(stream change.Stream, snapshot *change.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign, s.corrections = time.Now(), 0
	s.beginSnapshot(snapshot)
	if !snapshot.Reason.Full() {
		s.State, s.comparing = snapshotting, true
	}
	if snapshot.Reason == change.Epoch {
		t.ClusterUID = snapshot.Epoch
	}
	tell := t.Logger.Info
	if gap := snapshot.Gap(); gap != nil {
		tell = t.Logger.Debug // the gap's line says more
		_, state := gapOf(stream, gap)
		t.noteGap(stream, state)
		t.beginStory(stream, snapshot, state)
	}
	tell("reconcile starts", "resource", stream.String(), "reason", snapshot.Reason, "sinks", snapshot.Sinks,
		"from", snapshot.From, "resourceVersion", snapshot.ResourceVersion)
}

// Corrected is told of a difference that a full snapshot found although no watch told of it. The first of each
// reconcile are logged; Reconciled says how many there were.
func (t ofStreams) Corrected(stream change.Stream, c change.Correction) {
	t.metrics.corrections.WithLabelValues(stream.Resource.String(), c.Op.String()).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	if s.corrections++; s.corrections > maxCorrections {
		return
	}
	t.Logger.Warn("drift: the server has a change that no watch reported; it is corrected", "resource", stream.String(), "reason", c.Reason,
		"op", c.Op.String(), "object", c.Key.Shown(), "uid", c.UID, "resourceVersion", c.Version, "deliveredUid", c.Had, "deliveredResourceVersion", c.HadVersion)
}

// Reconciled is told that a reconcile is complete.
func (t ofStreams) Reconciled(stream change.Stream, snapshot *change.Snapshot) {
	t.metrics.reconciles.WithLabelValues(stream.Resource.String(), string(snapshot.Reason)).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.states.stream(stream)
	s.sign = time.Now()
	objects := s.endSnapshot(snapshot.Sinks)
	watched := s.compared(snapshot.Reason)
	s.LastReconcile = &reconcileState{
		Reason: snapshot.Reason, Sinks: snapshot.Sinks, ResourceVersion: snapshot.ResourceVersion, Counts: snapshot.Counts, Limits: snapshot.Limits, Time: time.Now(),
	}
	if s.corrections > 0 {
		t.Logger.Warn("drift was found and corrected", "resource", stream.String(), "reason", snapshot.Reason, "corrections", s.corrections)
	}
	if g := t.states.gaps.find(stream, snapshot); g != nil {
		t.endStory(g, snapshot, objects)
		return
	}
	tell := t.Logger.Info
	if snapshot.Reason == change.Removed {
		tell = t.Logger.Debug // Left says it
	}
	tell("reconciled", "resource", stream.String(), "reason", snapshot.Reason, "resourceVersion", snapshot.ResourceVersion,
		"replaced", snapshot.Counts.Replaced, "deleted", snapshot.Counts.Deleted, "synced", snapshot.Counts.Synced)
	if watched {
		t.Logger.Info("watching", "resource", stream.String(), "resourceVersion", snapshot.ResourceVersion)
	}
}
