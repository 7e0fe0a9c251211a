package nats

import (
	"context"
	"errors"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// writer makes batches durable.
type writer struct {
	*session
	modes *publishModes
}

// screen returns how many messages of the batch's front can be sent, and what is wrong with the one after them. The
// server would refuse that one, too, but the limit that belongs to the connection it enforces by cutting it.
func (w *writer) screen(ctx context.Context, batch []sink.Message) (int, error) {
	payload := w.conn.NC.MaxPayload()
	asked := false
	for i := range batch {
		reason, err := w.stream.objection(&batch[i], payload)
		if err != nil && !asked {
			asked = true
			w.refresh(ctx)
			reason, err = w.stream.objection(&batch[i], payload)
		}
		if err != nil {
			return i, &sink.RejectedError{Index: i, Reason: reason, Err: err}
		}
	}
	return len(batch), nil
}

// refresh reads the stream's limits anew: somebody may have raised them. Where the server does not answer, or the
// stream is another one, they stay as they are, and what follows finds out.
func (w *writer) refresh(ctx context.Context) {
	if !w.conn.NC.IsConnected() {
		return
	}
	defer w.conn.EndWith(ctx)()
	if info, err := w.lookup(ctx); err == nil && w.stream.place.endsBefore(info) == nil {
		w.stream.renew(&info.Config)
	}
}

// publish makes the batch durable (I1).
func (w *writer) publish(ctx context.Context, batch []sink.Message) error {
	if err := ctx.Err(); err != nil {
		return w.final(ctx, "write to", err)
	}
	p := &publisher{session: w.session, modes: w.modes, batch: batch}
	defer func() { w.left.doubt = namesOf(p.batch[p.acked:]) }()
	wait := newBackOff()
	for {
		before := p.acked
		err := p.attempt(ctx)
		if err == nil {
			return nil
		}
		if end := w.final(ctx, "write to", err); end != nil {
			return end
		}
		var again *conn.EndedError
		if errors.As(err, &again) {
			return err
		}
		if p.acked > before {
			wait.Reset()
		}
		w.options.Retry(reason(err), err)
		pause(ctx, wait.NextBackOff(), w.conn.Changed)
		if ctx.Err() != nil {
			return w.final(ctx, "write to", err)
		}
	}
}

// namesOf are the messages by id and subject alone: the rest is not ours to keep.
func namesOf(batch []sink.Message) []sink.Message {
	names := make([]sink.Message, len(batch))
	for i := range batch {
		names[i] = sink.Message{ID: batch[i].ID, Destination: batch[i].Destination}
	}
	return names
}
