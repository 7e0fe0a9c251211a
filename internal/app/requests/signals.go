package requests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink/signal"
)

const (
	// signalsFollowed is how many signals are followed between two pauses (I6): each is saved.
	signalsFollowed = 20
	// mostRefusals is how many refusals wait to be told (I6). Further ones are only counted.
	mostRefusals = 100
	// maxLogged is how many bytes of a signal of type log the log has.
	maxLogged = 300
)

// signalHandler is a brokerHandler at a topic of Debezium's signals. What is asked for there is for the sink of the
// topic alone.
type signalHandler struct {
	*brokerHandler
	followed int // since the last pause

	// What is to be told, and is not saved.
	refusals []signal.Notification
	listed   map[string]listing // by the task's id; nil is that nobody is to be told what becomes of signals
}

func newSignalHandler(d *brokerHandler, tells bool) *signalHandler {
	s := &signalHandler{brokerHandler: d}
	if tells {
		s.listed = map[string]listing{}
	} else {
		d.book.Tasks = nil // of a time when somebody was told
	}
	return s
}

// Save is as in destination.SignalHandler.
func (h *signalHandler) Save(place string) error { return h.save(h.book.At(place)) }

// Follow is as in destination.SignalHandler.
func (h *signalHandler) Follow(ctx context.Context, m *signal.Message) error {
	switch {
	case m.Broken != nil:
		h.refuse(m.Place, "signal", m.Broken)
		return nil
	case len(m.Key) == 0:
		h.refuse(m.Place, "signal", fmt.Errorf("it has no key: want the cluster's name, %s", h.Cluster.Name))
		return nil
	case string(m.Key) != h.Cluster.Name || m.After() == h.book.Place: // another's, or it was followed
		return nil
	}
	s, err := signal.Parse(m.Value)
	id := cmp.Or(s.ID, m.Place)
	if err == nil && m.Old != "" {
		err = errors.New(m.Old)
	}
	if err != nil {
		h.refuse(id, cmp.Or(s.Type, "signal"), err)
		return nil
	}
	if h.followed >= signalsFollowed {
		return signal.ErrEnough
	}
	h.followed++
	return h.do(ctx, &s, m)
}

// do does what the signal asks for, or refuses it.
func (h *signalHandler) do(ctx context.Context, s *signal.Signal, m *signal.Message) error {
	err, what := error(nil), s.Type
	switch s.Type {
	case signal.Execute:
		err = h.execute(ctx, s, m)
	case signal.Stop, signal.Pause, signal.Resume: // stop-snapshot, as others are asked to stop
		err = h.steer(ctx, s, m, strings.TrimSuffix(s.Type, "-snapshot"))
	case signal.Log:
		what, err = h.log(s, m)
	}
	if errors.Is(err, pipeline.ErrNotStreaming) || errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		h.refuse(cmp.Or(s.ID, m.Place), what, err)
		return nil
	}
	h.Told.Asked(h.sink, what, nil)
	return nil
}

// refuse tells that the signal is not followed, and why.
func (h *signalHandler) refuse(id, what string, err error) {
	h.Told.Asked(h.sink, what, shortened(err))
	if h.listed != nil && len(h.refusals) < mostRefusals {
		h.refusals = append(h.refusals, signal.Refused(id, err.Error()))
	}
}

// log is what the log is told. It is saved with the next place: what is told twice after a crash does no harm.
func (h *signalHandler) log(s *signal.Signal, m *signal.Message) (what string, err error) {
	if h.book.Has(s.ID) {
		return s.Type, &control.RepeatedError{ID: s.ID}
	}
	h.book = h.book.With(s.ID)
	text := strings.Replace(s.Message, "{}", strconv.FormatInt(m.Offset, 10), 1) // as Debezium does
	return s.Type + ": " + strings.ToValidUTF8(text[:min(len(text), maxLogged)], ""), nil
}

// execute owes the snapshots that the signal asks for.
func (h *signalHandler) execute(ctx context.Context, s *signal.Signal, m *signal.Message) error {
	parts, err := s.Parts(h.matcher())
	if err != nil {
		return err
	}
	wanted, err := h.taken(byLimits(parts))
	if err == nil {
		err = h.room()
	}
	if err != nil {
		return err
	}
	next := h.book.With(s.ID).At(m.After())
	if h.listed != nil {
		if h.book.IsFull() {
			return errors.New("too many snapshots of signals are under way, or nobody could be told of their end: send it again when some are delivered")
		}
		var taken []signal.Part // of those that are wanted
		for _, p := range wanted {
			for _, stream := range p.Streams {
				taken = append(taken, signal.Part{Stream: stream, Limits: p.Limits})
			}
		}
		next = next.WithTask(signal.Task{ID: cmp.Or(s.ID, m.Place), Parts: taken})
	}
	return h.follow(s.ID, next, func(heard map[string][]byte) error {
		return h.Request(ctx, pipeline.Request{Sink: h.sink, Parts: wanted, Heard: heard})
	})
}

// matcher finds streams by the names that they have now.
func (h *signalHandler) matcher() signal.Matcher {
	named := h.Cluster.Named()
	return func(collection string) ([]string, error) { return control.Match(named, collection) }
}

// byLimits are the parts, those with the same limits as one.
func byLimits(parts []signal.Part) (all []pipeline.Part) {
	for _, part := range parts {
		at := slices.IndexFunc(all, func(p pipeline.Part) bool { return p.Limits == part.Limits })
		if at < 0 {
			at, all = len(all), append(all, pipeline.Part{Limits: part.Limits})
		}
		all[at].Streams = append(all[at].Streams, part.Stream)
	}
	return all
}

// taken is what the sink takes of the parts and what there may be objects of, with limits that an API server takes. It
// is an error if that is nothing.
func (h *signalHandler) taken(parts []pipeline.Part) (taken []pipeline.Part, err error) {
	var nothing error
	for _, part := range parts {
		asked := control.SnapshotRequest{Namespace: part.Limits.Namespace, Name: part.Limits.Name, Selector: part.Limits.Selector}
		limits, err := limitsOf(&asked)
		if err != nil {
			return nil, err
		}
		streams := h.Cluster.TakenBy(h.Config.Sinks, []string{h.sink}, part.Streams)
		if len(streams) == 0 {
			nothing = &control.RefusedError{Text: fmt.Sprintf("%s: sink %s takes nothing of it", strings.Join(part.Streams, ", "), h.sink)}
			continue
		}
		if streams, err = h.Cluster.Reached(streams, limits); err != nil {
			nothing = err
			continue
		}
		taken = append(taken, pipeline.Part{Streams: streams, Limits: limits})
	}
	if len(taken) == 0 {
		return nil, nothing
	}
	return taken, nil
}

// steerings is how often an order is given anew because a snapshot of it is delivered meanwhile.
const steerings = 3

// steer stops, pauses or resumes the snapshots that the sink was asked for, of the chosen streams.
func (h *signalHandler) steer(ctx context.Context, s *signal.Signal, m *signal.Message, do string) (err error) {
	streams, err := s.Chosen(h.matcher())
	if err != nil {
		return err
	}
	for range steerings {
		var ids []string
		if ids, err = h.steerable(streams, do); err != nil {
			return err
		}
		err = h.follow(s.ID, h.book.With(s.ID).At(m.After()), func(heard map[string][]byte) error {
			return h.order(ctx, control.SteerRequest{Do: do, IDs: ids}, heard)
		})
		if !errors.As(err, new(*control.RefusedError)) { // of one that is delivered
			return err
		}
	}
	return err
}

// steerable are the ids of snapshots that the order can be of; no streams is all.
func (h *signalHandler) steerable(streams []string, do string) (ids []string, err error) {
	owed, err := h.owed()
	if err != nil {
		return nil, err
	}
	for _, o := range owed {
		isChosen := len(streams) == 0 || slices.Contains(streams, o.Stream)
		isFit := do == control.Stop || (do == control.Resume) == (o.State == control.Paused)
		if o.Sink == h.sink && o.Reason == string(change.Requested) && isChosen && isFit {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) == 0 {
		return nil, &control.RefusedError{Text: fmt.Sprintf("no snapshot that was asked for can be %s", map[string]string{
			control.Stop: "stopped: none is owed", control.Pause: "paused: none is owed that is not", control.Resume: "resumed: none is paused",
		}[do])}
	}
	return ids, nil
}

// mostOwed is how many snapshots may be owed before no more are taken from a broker (I6): whoever may ask there must
// not fill the state.
const mostOwed = 1000

// brokerHandler answers those who ask through the broker of one sink. It is of one goroutine.
type brokerHandler struct {
	*Handler
	sink string
	book signal.Book
}

// newBrokerHandler reads what the handler remembers.
func newBrokerHandler(c *Handler, sinkName string) (*brokerHandler, error) {
	d := &brokerHandler{Handler: c, sink: sinkName}
	return d, d.reread()
}

func (h *brokerHandler) reread() error {
	saved, err := h.Store.Heard(h.sink)
	if err == nil {
		h.book, err = signal.ParseBook(saved)
	}
	return err
}

// follow does what has the id, unless that was done before. What is done saves the next book with it (I5).
func (h *brokerHandler) follow(id string, next signal.Book, do func(heard map[string][]byte) error) error {
	switch {
	case len(id) > signal.MaxID:
		return &control.RefusedError{Text: fmt.Sprintf("an id of %d bytes: want %d at most", len(id), signal.MaxID)}
	case h.book.Has(id):
		return &control.RepeatedError{ID: id}
	}
	err := do(map[string][]byte{h.sink: next.Encode()})
	if err == nil {
		h.book = next
		return nil
	}
	return errors.Join(err, h.reread()) // it may be saved all the same
}

// save saves the next book.
func (h *brokerHandler) save(next signal.Book) error {
	return h.follow("", next, func(heard map[string][]byte) error {
		return h.Store.Commit(checkpoint.Batch{Heard: heard})
	})
}

// room says whether more may be owed.
func (h *brokerHandler) room() error {
	owed, err := h.Store.PendingSnapshots()
	if err == nil && len(owed) >= mostOwed {
		err = &control.RefusedError{Text: fmt.Sprintf("%d snapshots are owed already: ask again when some are delivered", len(owed))}
	}
	return err
}

// snapshot owes what is asked for.
func (h *brokerHandler) snapshot(ctx context.Context, id string, asked control.SnapshotRequest) (answer *control.Snapshot, err error) {
	if err := h.room(); err != nil {
		return nil, err
	}
	err = h.follow(id, h.book.With(id), func(heard map[string][]byte) (err error) {
		answer, err = h.owe(ctx, asked, heard)
		return err
	})
	return answer, err
}

// steer stops, pauses or resumes snapshots.
func (h *brokerHandler) steer(ctx context.Context, id string, asked control.SteerRequest) error {
	return h.follow(id, h.book.With(id), func(heard map[string][]byte) error { return h.order(ctx, asked, heard) })
}

// maxTold is how many bytes of an error the log is told: it may name what others have made up.
const maxTold = 500

// shortened is the error with as much of its text as the log has; nil is none.
func shortened(err error) error {
	if err == nil || len(err.Error()) <= maxTold {
		return err
	}
	return &control.RefusedError{Text: strings.ToValidUTF8(err.Error()[:maxTold], "") + "..."}
}

// progressPause is the least time between two notifications of how far a snapshot is.
const progressPause = 5 * time.Second

// listing is how far a snapshot was when it was told.
type listing struct {
	objects int
	time    time.Time
}
