package control

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// pollTime is how often Wait asks.
const pollTime = 200 * time.Millisecond

// maxLate is how often Wait looks for a reconcile that /statusz does not show yet. It may never do: an exporter that
// was started again tells only of this life.
const maxLate = 10

// Reconcile is what /statusz tells of a stream's last complete reconcile.
type Reconcile struct {
	Reason          change.Reason `json:"reason"`
	ResourceVersion string        `json:"resourceVersion"`
	change.Counts
	Time time.Time `json:"time"`
}

// Wait returns when every sink of the snapshot has acknowledged it to its end, with what /statusz tells of each stream
// then. A sink that is not there is waited for as long as ctx lives. tell is told now and then of what is still owed.
func (c *Client) Wait(ctx context.Context, snapshot *Snapshot, tell func([]Owed)) (map[string]Reconcile, error) {
	ticker := time.NewTicker(pollTime)
	defer ticker.Stop()
	for late := 0; ; {
		found, err := c.look(ctx, snapshot, tell)
		if err != nil {
			return nil, err
		}
		if found != nil {
			if late++; snapshot.newer(found) || late > maxLate {
				return found, nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// StoppedError says that a part of the snapshot was stopped.
type StoppedError struct{ Stopped }

func (e *StoppedError) Error() string {
	return "the snapshot " + e.ID + " of " + e.Stream + " for sink " + e.Sink + " was stopped: its sink may have a part of it"
}

// look returns the streams' last reconciles, nil while some of the snapshot is owed.
func (c *Client) look(ctx context.Context, snapshot *Snapshot, tell func([]Owed)) (map[string]Reconcile, error) {
	list, err := c.Owed(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list.Stopped {
		if stopped := &list.Stopped[i]; snapshot.has(stopped.Owed) && !stopped.Time.Before(snapshot.Time) {
			return nil, &StoppedError{*stopped}
		}
	}
	if open := slices.DeleteFunc(list.Owed, func(o Owed) bool { return !snapshot.has(o) }); len(open) > 0 {
		tell(open)
		return nil, nil
	}
	return c.reconciles(ctx, snapshot.Streams)
}

func (s *Snapshot) has(owed Owed) bool {
	return owed.Reason == string(change.Requested) && owed.Limits == s.Limits && slices.Contains(s.Streams, owed.Stream) && slices.Contains(s.Sinks, owed.Sink)
}

// newer says whether all of the reconciles ended after the snapshot was asked for.
func (s *Snapshot) newer(found map[string]Reconcile) bool {
	for _, r := range found {
		if r.Time.Before(s.Time) {
			return false
		}
	}
	return true
}

// reconciles reads the last reconcile of each of the streams.
func (c *Client) reconciles(ctx context.Context, streams []string) (map[string]Reconcile, error) {
	var status struct {
		Streams map[string]struct {
			LastReconcile Reconcile `json:"lastReconcile"`
		} `json:"streams"`
	}
	if err := c.ask(ctx, http.MethodGet, "/statusz", nil, &status); err != nil {
		return nil, err
	}
	last := map[string]Reconcile{}
	for _, name := range streams {
		last[name] = status.Streams[name].LastReconcile
	}
	return last, nil
}
