package requests

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/pipeline"
)

// AskTime is how long a request waits for a pipeline that is still opening its sinks.
const AskTime = 10 * time.Second

// Functions are what an operator may ask of this run; replay sends dead letters again.
func (h *Handler) Functions(replay func(context.Context, control.ReplayRequest) (*control.Replayed, error)) control.Functions {
	return control.Functions{
		Snapshot: func(ctx context.Context, asked control.SnapshotRequest) (*control.Snapshot, error) {
			ctx, cancel := context.WithTimeout(ctx, AskTime)
			defer cancel()
			return h.owe(ctx, asked, nil)
		},
		Owed: h.Owing.list,
		Steer: func(ctx context.Context, asked control.SteerRequest) error {
			ctx, cancel := context.WithTimeout(ctx, AskTime)
			defer cancel()
			return h.Owing.steer(ctx, asked, nil)
		},
		Inventory: func(q control.Query) (iter.Seq2[control.Object, error], error) {
			return saved.Find(h.Store, h.Cluster.Named(), q)
		},
		Checkpoint: func() (*control.State, error) { return control.ReadState(h.Store) },
		Replay:     replay,
	}
}

// owe asks the pipeline for a full snapshot of what is meant, and returns when it is owed. What was heard through a
// sink's broker is saved with the request.
func (h *Handler) owe(ctx context.Context, asked control.SnapshotRequest, heard map[string][]byte) (*control.Snapshot, error) {
	meant, err := h.meant(&asked)
	if err != nil {
		return nil, err
	}
	meant.Time = time.Now()
	err = ask(ctx, h.Requests, pipeline.Request{Streams: meant.Streams, Sink: asked.Sink, Limits: meant.Limits, Heard: heard})
	if err != nil {
		return nil, err
	}
	return meant, nil
}

// meant is the snapshot that is asked for. What there is not is refused.
func (h *Handler) meant(asked *control.SnapshotRequest) (*control.Snapshot, error) {
	limits, err := limitsOf(asked)
	if err != nil {
		return nil, err
	}
	streams, err := control.Resolve(h.Cluster.Named(), asked.Resources)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range h.Config.Sinks {
		names = append(names, s.Name)
	}
	sinks, err := control.ResolveSink(names, asked.Sink)
	if err != nil {
		return nil, err
	}
	taken := h.Cluster.TakenBy(h.Config.Sinks, sinks, streams)
	if len(taken) == 0 {
		return nil, &control.RefusedError{Text: fmt.Sprintf("%s: none of these sinks takes it: %s", strings.Join(streams, ", "), strings.Join(sinks, ", "))}
	}
	if taken, err = h.Cluster.Reached(taken, limits); err != nil {
		return nil, err
	}
	return &control.Snapshot{Streams: taken, Sinks: sinks, Limits: limits}, nil
}

// ask hands the request over and waits for its answer. The pipeline takes none before its sinks are open.
func ask(ctx context.Context, requests chan<- pipeline.Request, request pipeline.Request) error {
	answer := make(chan error, 1)
	request.Answer = answer
	return handOver(ctx, requests, request, answer)
}
