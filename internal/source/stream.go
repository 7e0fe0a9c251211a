package source

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Stream reads one resource, in one namespace or in all, and puts its changes in line. client-go's Reflector runs it:
// the loop of lists and watches, their time limits, 410, 429, very short watches and backoff are the Reflector's own
// rules. What is ours are the ListerWatcher, which lists only where the position cannot be continued, and the decoder.
type Stream struct {
	output
	retries *wait.Backoff

	origin  origin
	refused atomic.Pointer[error] // why the stream is not read any more; nil while it is

	silence silence
	remnant remnant

	schedule schedule
	goesOn   bool  // a comparison that an earlier life began goes on, if nothing else comes before it
	begun    int64 // when the newest difference was begun, in ms since 1970: each has its own
}

// precedence is the stream's.
func (s *Stream) precedence() precedence {
	switch {
	case isBuiltIn(s.stream.Resource):
		return builtInFirst
	case s.cursor.position.ResourceVersion != "":
		return knownNext
	}
	return othersLast
}

// isBuiltIn says whether the resource's group looks like one of Kubernetes' own: only the order of a start follows from
// it.
func isBuiltIn(resource change.Resource) bool {
	return !strings.Contains(resource.Group, ".") || strings.HasSuffix(resource.Group, ".k8s.io")
}

// newDifference begins a difference of what is due, with a list of the version.
func (s *Stream) newDifference(due []change.Owed, version string, sinkOnly []change.SinkOnly) *difference {
	now := max(time.Now().UnixMilli(), s.begun+1)
	s.begun = now
	if due[0].Reason == change.Epoch {
		s.epoch = change.NewEpoch(s.origin.uid, now)
	}
	from := s.cursor.position.ResourceVersion
	if from == version { // where more may come at the version, that is what may be missing
		from = s.cursor.position.ResumeVersion()
	}
	cluster := change.ClusterOf(s.epoch)
	if s.beside == nil && !due[0].Reason.Full() { // else whoever watches may be finding out about another one
		cluster = s.origin.uid
	}
	d := &difference{
		out: &s.output,
		snapshot: &change.Snapshot{
			ID:     version + "." + strconv.FormatInt(now, 10),
			Reason: due[0].Reason, From: from, Since: s.heard, ResourceVersion: version, Epoch: cluster,
			Limits: due[0].Limits,
		},
		inventory: newMerge(s.Inventory, s.stream.String(), s.origin.unsorted.Load()),
		sinkOnly:  newSinkOnly(sinkOnly),
		upTo:      version,
	}
	d.gone = func(ctx context.Context, u unlisted) error { return d.emitDeleted(ctx, u.entry) }
	d.inventory.limit(d.snapshot.Limits)
	if d.snapshot.Reason == change.Initial {
		d.snapshot.From = ""
	}
	for _, owed := range due {
		if owed.Sink != "" {
			d.snapshot.Sinks = append(d.snapshot.Sinks, owed.Sink)
		}
		if s.origin.unsorted.Load() {
			owed.After = "" // it means something in the order of the keys only
		}
		snapshot := *d.snapshot
		snapshot.Generation = owed.Generation
		if owed.Since != 0 {
			snapshot.From, snapshot.Since = owed.From, time.UnixMilli(owed.Since)
		}
		d.parts = append(d.parts, &part{owed: owed, snapshot: &snapshot})
	}
	return d
}
