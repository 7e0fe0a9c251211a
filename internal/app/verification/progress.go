package verification

import (
	"context"
	"errors"
	"slices"

	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/verify"
)

// exporterProgress is how far the exporter has come, as its saved state says.
type exporterProgress struct {
	known     bool // the rest is
	running   bool
	positions map[string]map[string]string // by sink and stream
	owed      []control.Owed
}

// of is how far it has come with one stream of a sink.
func (s *exporterProgress) of(sink, stream string) verify.Progress {
	owed := slices.ContainsFunc(s.owed, func(o control.Owed) bool { return o.Sink == sink && o.Stream == stream })
	return verify.Progress{Known: s.known, Position: s.positions[sink][stream], Owed: owed}
}

// exporterProgressOf asks the running exporter, or reads what a stopped one left. It is not known where there is no
// state, or one of another cluster.
func exporterProgressOf(ctx context.Context, find func() (*control.Client, error), stateDir, uid string) (*exporterProgress, error) {
	running := false
	state, err := saved.Read(ctx, func() (*control.Client, error) {
		client, err := find()
		running = err == nil
		return client, err
	}, stateDir)
	if errors.Is(err, checkpoint.ErrNoState) {
		return &exporterProgress{}, nil
	}
	if err != nil {
		return nil, err
	}
	if state.ClusterUID != uid {
		return &exporterProgress{}, nil
	}
	found := &exporterProgress{known: true, running: running, positions: map[string]map[string]string{}, owed: state.Owed}
	for name, stream := range state.Streams {
		for sink, at := range stream.Sinks {
			if at.Comparing != "" { // it proves nothing
				continue
			}
			if found.positions[sink] == nil {
				found.positions[sink] = map[string]string{}
			}
			found.positions[sink][name] = at.ResourceVersion
		}
	}
	return found, nil
}
