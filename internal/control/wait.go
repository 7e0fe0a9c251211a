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

// Reconcile is what /statusz tells of a stream's last complete reconcile.
type Reconcile struct {
	Reason          change.Reason `json:"reason"`
	ResourceVersion string        `json:"resourceVersion"`
	change.Counts
}

// Wait returns when every sink of the snapshot has acknowledged it to its end, with the counts of each stream. A sink
// that is not there is waited for as long as ctx lives.
func (c *Client) Wait(ctx context.Context, snapshot *Snapshot) (map[string]Reconcile, error) {
	ticker := time.NewTicker(pollTime)
	defer ticker.Stop()
	for {
		var list OwedList
		if err := c.ask(ctx, http.MethodGet, "/snapshot", nil, &list); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list.Owed, snapshot.has) {
			return c.reconciles(ctx, snapshot.Streams)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Snapshot) has(owed Owed) bool {
	return owed.Reason == string(change.Requested) && slices.Contains(s.Streams, owed.Stream) && slices.Contains(s.Sinks, owed.Sink)
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
