package nats

import (
	"context"
	"time"

	"github.com/kubecdc/kubecdc/internal/sink/nats/conn"
)

// watch compares a stream with what it held.
type watch struct {
	*session
	inspector *inspector
	looked    time.Time // when it did last
}

// look compares the stream with what it held, now and then. Where that fails, what follows finds out why. A bucket is
// looked at before and after each write, since new keys would stand for the ones that somebody took away, and a shared
// stream also before the first write, since another cluster's exporter may have begun at the same time.
func (w *watch) look(ctx context.Context, writes bool) error {
	due := time.Since(w.looked) >= w.tuning.look || writes && (w.options.KV != "" || w.options.Shared && !w.stream.confirmed)
	if !due || !w.conn.NC.IsConnected() || ctx.Err() != nil {
		return nil
	}
	w.looked = time.Now()
	defer w.conn.EndWith(ctx)()
	info, err := w.lookup(ctx)
	if err != nil || w.stream.place.endsBefore(info) != nil {
		return nil
	}
	if missing := w.stream.place.Held.missing(view{info, 0, w.options.Shared}); missing != "" {
		return conn.Ended("write to stream %s: it was purged: %s: open the sink again", w.name, missing)
	}
	w.stream.place.Held = hold(info, w.stream.place.Held)
	if err := w.options.fit("write to", &info.Config); err != nil || !w.options.Shared {
		return err
	}
	return w.inspector.inspect(ctx, info)
}

// count notes how many keys a bucket has after a write. Where that fails, fewer are known.
func (w *watch) count(ctx context.Context) {
	if w.options.KV == "" || !w.conn.NC.IsConnected() || ctx.Err() != nil {
		return
	}
	defer w.conn.EndWith(ctx)()
	if info, err := w.lookup(ctx); err == nil && w.stream.place.endsBefore(info) == nil {
		w.stream.place.Held = hold(info, w.stream.place.Held)
	}
}
