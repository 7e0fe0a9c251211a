package requests

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubecdc/kubecdc/internal/app/background"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/telemetry"
	"github.com/kubecdc/kubecdc/internal/pipeline"
)

// AnswerHangups asks for a full snapshot of everything at each hangup, until the returned function is called, which
// waits for its goroutine.
func (h *Handler) AnswerHangups(ctx context.Context, hangups <-chan os.Signal) (stop func()) {
	return background.Run(ctx, func(ctx context.Context) {
		for {
			select {
			case <-hangups:
				snapshot, err := h.owe(ctx, control.SnapshotRequest{}, nil)
				if err != nil {
					h.Logger.Warn("SIGHUP requested a full snapshot, which could not start", "error", err)
					continue
				}
				h.Logger.Info("SIGHUP requested a full snapshot", "resources", strings.Join(snapshot.Streams, ","), "sinks", strings.Join(snapshot.Sinks, ","))
			case <-ctx.Done():
				return
			}
		}
	})
}

// Replay sends dead letters again.
type Replay func(context.Context, control.ReplayRequest) (*control.Replayed, error)

// Questions are what an operator may ask of this run.
func (h *Handler) Questions(replay Replay) control.Questions {
	return control.Questions{
		"POST /snapshot": control.Asked(`{"resources":["pods"],"sink":"out"}, both optional`,
			func(ctx context.Context, asked control.SnapshotRequest) (*control.Snapshot, error) {
				return h.owe(ctx, asked, nil)
			}),
		"POST /snapshot/steer": control.Asked(`{"do":"pause","ids":["7mare7x"]}, where do is stop, pause or resume`,
			func(ctx context.Context, asked control.SteerRequest) (control.SteerRequest, error) {
				return asked, h.order(ctx, asked, nil)
			}),
		"POST /deadletter/replay": control.Asked(`{"sink":"bus","ids":["00112233445566778899"],"force":false}, all optional`, replay),
		"GET /snapshot":           control.Shown(h.list),
		"GET /checkpoint":         control.Shown(func() (*control.State, error) { return control.ReadState(h.Store, true) }),
	}
}

// Inventory is as control.Inventory.
func (h *Handler) Inventory(q control.Query) (iter.Seq2[control.Object, error], error) {
	return saved.Find(h.Store, h.Cluster.Named(), q)
}

// owe asks the pipeline for a full snapshot of what is meant, and returns when it is owed. What was heard through a
// sink's broker is saved with the request.
func (h *Handler) owe(ctx context.Context, asked control.SnapshotRequest, heard map[string][]byte) (*control.Snapshot, error) {
	meant, err := h.meant(&asked)
	if err != nil {
		return nil, err
	}
	meant.Time = time.Now()
	parts := []pipeline.Part{{Streams: meant.Streams, Limits: meant.Limits}}
	return meant, h.Request(ctx, pipeline.Request{Sink: asked.Sink, Parts: parts, Heard: heard})
}

// NamespaceChanged asks for what the labels of the namespace choose: each object may have another place now, or pass a
// filter that it did not.
func (h *Handler) NamespaceChanged(ctx context.Context, name string, before, after map[string]string) error {
	for i := range h.Config.Sinks {
		s := &h.Config.Sinks[i]
		all := config.AsksNamespace(s.Filter) || slices.ContainsFunc(s.NamespaceLabels(), func(key string) bool { return before[key] != after[key] })
		limits := change.Limits{Namespace: name}
		streams, err := h.Cluster.Reached(h.Cluster.TakenBy(h.Config.Sinks, []string{s.Name}, h.Cluster.AskingNamespaces(all)), limits)
		if err != nil { // nothing of it is streamed
			continue
		}
		if err := h.Request(ctx, pipeline.Request{Sink: s.Name, Parts: []pipeline.Part{{Streams: streams, Limits: limits}}}); err != nil {
			return fmt.Errorf("ask for what is in namespace %s, whose labels have changed, for sink %s: %w", name, s.Name, err)
		}
	}
	return nil
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
	sinks, err := control.ResolveSink(h.Config.SinkNames(), asked.Sink)
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

// Handler does what is asked of one run, whoever asks, and knows which full snapshots that owes. All fields are needed.
type Handler struct {
	Config   *config.Config
	Cluster  *cluster.Cluster
	Store    *checkpoint.Store
	Logger   *slog.Logger
	Request  func(context.Context, pipeline.Request) error // as of pipeline.Desk
	Steer    func(ctx context.Context, do checkpoint.Steering, ids []string, heard map[string][]byte) error
	Progress func(stream string, of change.Owed) (telemetry.Progress, bool)
	Status   func() any // the status document
	Told     Observer

	mu   sync.Mutex // guards the following
	last []control.Stopped
}

// Observer is told what is asked through the brokers of sinks.
type Observer interface {
	Hears(sinkName string, err error)
	Asked(sinkName, what string, err error)
}

// mostStopped is how many stopped snapshots are remembered for those who wait for them.
const mostStopped = 1000

// list is what is owed, and what was stopped last.
func (h *Handler) list() (*control.OwedList, error) {
	owed, err := h.owed()
	h.mu.Lock()
	defer h.mu.Unlock()
	return &control.OwedList{Owed: owed, Stopped: slices.Clone(h.last)}, err
}

// order has the pipeline stop, pause or resume snapshots. What was heard through a sink's broker is saved with the
// order.
func (h *Handler) order(ctx context.Context, asked control.SteerRequest, heard map[string][]byte) error {
	do, known := map[string]checkpoint.Steering{
		control.Stop: checkpoint.Stop, control.Pause: checkpoint.Pause, control.Resume: checkpoint.Resume,
	}[asked.Do]
	if !known || len(asked.IDs) == 0 {
		return &control.RefusedError{Text: fmt.Sprintf("%q of %d snapshots: want stop, pause or resume of one at least", asked.Do, len(asked.IDs))}
	}
	before, err := h.owed()
	if err != nil {
		return err
	}
	if err = h.Steer(ctx, do, asked.IDs, heard); err != nil || do != checkpoint.Stop {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range before {
		if slices.ContainsFunc(asked.IDs, func(id string) bool { return strings.EqualFold(id, o.ID) }) {
			h.last = append(h.last, control.Stopped{Owed: o, Time: time.Now()})
		}
	}
	h.last = h.last[max(0, len(h.last)-mostStopped):]
	return nil
}

// owed are those that are owed, with how far each is.
func (h *Handler) owed() ([]control.Owed, error) {
	owed, err := control.ReadOwed(h.Store)
	if err != nil {
		return nil, err
	}
	for i := range owed {
		o := &owed[i]
		if o.State == control.Paused {
			continue
		}
		progress, found := h.Progress(o.Stream, change.Owed{Sink: o.Sink, Reason: change.Reason(o.Reason), Limits: o.Limits})
		switch {
		case !found:
			o.State = control.Waits
		case progress.Read:
			o.State = control.Delivers
		default:
			o.State = control.Reads
		}
		o.Objects, o.Percent = progress.Objects, progress.Percent
	}
	return owed, nil
}

// limitsOf are those that a request asks for. Of what no server would take the error is a *control.RefusedError.
func limitsOf(asked *control.SnapshotRequest) (l change.Limits, err error) {
	l.Namespace, l.Name = asked.Namespace, asked.Name
	if l.Namespace != "" && (config.CheckNamespace(l.Namespace) != nil || len(l.Namespace) > maxNamespace) {
		return l, &control.RefusedError{Text: fmt.Sprintf("namespace %.70q cannot be one: want lower case letters, digits and -, 63 at most", l.Namespace)}
	}
	if l.Name != "" && (len(l.Name) > maxName || len(content.IsPathSegmentName(l.Name)) > 0) {
		return l, &control.RefusedError{Text: fmt.Sprintf("name %.40q cannot be an object's: give a name as kubectl shows it", l.Name)}
	}
	if len(asked.Selector) > maxSelector {
		return l, &control.RefusedError{Text: fmt.Sprintf("selector of %d bytes: want %d at most", len(asked.Selector), maxSelector)}
	}
	selector, err := labels.Parse(asked.Selector)
	if err != nil {
		return l, &control.RefusedError{Text: fmt.Sprintf("selector %.80q: %v: write it as kubectl does, such as app=web", asked.Selector, err)}
	}
	l.Selector = selector.String() // the same one for all ways to write it
	return l, nil
}

const (
	maxNamespace = 63   // that an API server takes
	maxName      = 253  // that it takes
	maxSelector  = 4096 // it is a part of a URL
)
