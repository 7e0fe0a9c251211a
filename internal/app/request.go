package app

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/pipeline"
)

// controls are what an operator may ask of this run.
func (a *assembly) controls(requests chan<- pipeline.Request, owing *snapshots, deadLetters *deadLetters) control.Functions {
	return control.Functions{
		Snapshot: func(ctx context.Context, asked control.SnapshotRequest) (*control.Snapshot, error) {
			ctx, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			return a.snapshot(ctx, asked, requests)
		},
		Owed:    owing.owed,
		Stopped: owing.stopped,
		Steer: func(ctx context.Context, asked control.SteerRequest) error {
			ctx, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			return owing.steer(ctx, asked)
		},
		Inventory: func(q control.Query) (iter.Seq2[control.Object, error], error) {
			return inventoryOf(a.store, a.cluster.named(), q)
		},
		Checkpoint: func() (*control.State, error) { return control.ReadState(a.store) },
		Replay:     deadLetters.replay,
	}
}

// snapshot asks the pipeline for a full snapshot of what is meant, and returns when it is owed.
func (a *assembly) snapshot(ctx context.Context, asked control.SnapshotRequest, requests chan<- pipeline.Request) (*control.Snapshot, error) {
	return a.snapshotWith(ctx, asked, requests, nil)
}

// snapshotWith saves with the request what was heard through a sink's broker.
func (a *assembly) snapshotWith(ctx context.Context, asked control.SnapshotRequest, requests chan<- pipeline.Request, heard map[string][]byte) (*control.Snapshot, error) {
	meant, err := a.meant(&asked)
	if err != nil {
		return nil, err
	}
	meant.Time = time.Now()
	err = ask(ctx, requests, pipeline.Request{Reason: change.Requested, Streams: meant.Streams, Sink: asked.Sink, Limits: meant.Limits, Heard: heard})
	if err != nil {
		return nil, err
	}
	return meant, nil
}

// meant is the snapshot that is asked for. What there is not is refused.
func (a *assembly) meant(asked *control.SnapshotRequest) (*control.Snapshot, error) {
	limits, err := limitsOf(asked)
	if err != nil {
		return nil, err
	}
	streams, err := control.Resolve(a.cluster.named(), asked.Resources)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range a.cfg.Sinks {
		names = append(names, s.Name)
	}
	sinks, err := control.ResolveSink(names, asked.Sink)
	if err != nil {
		return nil, err
	}
	taken := a.cluster.takenBy(a.cfg.Sinks, sinks, streams)
	if len(taken) == 0 {
		return nil, &control.RefusedError{Text: fmt.Sprintf("%s: none of these sinks takes it: %s", strings.Join(streams, ", "), strings.Join(sinks, ", "))}
	}
	if taken, err = a.cluster.reached(taken, limits); err != nil {
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

// handOver gives the pipeline what it is asked, and waits for the answer, which comes for all that was taken: who gave
// up before would not know what is done.
func handOver[T any](ctx context.Context, to chan<- T, asked T, answer <-chan error) error {
	select {
	case to <- asked:
	case <-ctx.Done():
		return control.ErrNotStreaming
	}
	return <-answer
}

// named are the streams with all that they may be called.
func (c *cluster) named() []control.Stream {
	var named []control.Stream
	for _, s := range c.Streams() {
		r := s.Stream.Resource
		kind := strings.ToLower(r.Kind)
		alias := []string{kind}
		if r.Group != "" {
			alias = append(alias, kind+"."+r.Group, r.Name+"."+r.Version+"."+r.Group)
		}
		for _, name := range s.Names {
			alias = append(alias, strings.ToLower(name))
		}
		named = append(named, control.Stream{Name: s.Stream.String(), Alias: alias})
	}
	return named
}

// takenBy are those of the streams that any of the named sinks takes.
func (c *cluster) takenBy(configured []config.Sink, sinks, streams []string) []string {
	taken := map[string]bool{}
	for i := range configured {
		if !slices.Contains(sinks, configured[i].Name) {
			continue
		}
		wants := c.wantedBy(&configured[i])
		for _, s := range c.Streams() {
			if wants == nil || wants(&s.Stream) {
				taken[s.Stream.String()] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(streams), func(name string) bool { return !taken[name] })
}

// answerHangups asks for a full snapshot of everything at each hangup, until the returned function is called, which
// waits for its goroutine.
func (a *assembly) answerHangups(ctx context.Context, requests chan<- pipeline.Request) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-a.options.Hangups:
				a.answerHangup(ctx, requests)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (a *assembly) answerHangup(ctx context.Context, requests chan<- pipeline.Request) {
	snapshot, err := a.snapshot(ctx, control.SnapshotRequest{}, requests)
	if err != nil {
		a.logger.Warn("SIGHUP requested a full snapshot, which could not start", "error", err)
		return
	}
	a.logger.Info("SIGHUP requested a full snapshot", "resources", strings.Join(snapshot.Streams, ","), "sinks", strings.Join(snapshot.Sinks, ","))
}
