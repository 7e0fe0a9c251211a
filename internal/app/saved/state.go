package saved

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
)

// open finds the running exporter, or opens what a stopped one left: one of both is nil.
func open(ctx context.Context, find func() (*control.Client, error), dir string) (*control.Client, *checkpoint.Store, error) {
	client, err := find()
	if !errors.As(err, new(*control.NotRunningError)) {
		return client, nil, err
	}
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{ReadOnly: true})
	return nil, store, err
}

// Read comes from the running exporter, or from the directory of a stopped one.
func Read(ctx context.Context, find func() (*control.Client, error), dir string) (state *control.State, running bool, err error) {
	client, store, err := open(ctx, find, dir)
	switch {
	case err != nil:
		return nil, false, err
	case client != nil:
		state, err = client.Checkpoint(ctx)
		return state, true, err
	}
	state, err = control.ReadState(store, true)
	return state, false, errors.Join(err, store.Close())
}

// ReadDir reads the directory of a stopped exporter.
func ReadDir(ctx context.Context, dir string) (*control.State, error) {
	state, _, err := Read(ctx, func() (*control.Client, error) { return nil, new(control.NotRunningError) }, dir)
	return state, err
}

// Inventory is what the running exporter, or the state of a stopped one, knows of objects. The returned function closes
// the latter.
func Inventory(ctx context.Context, find func() (*control.Client, error), dir string, query control.Query) (iter.Seq2[control.Object, error], func() error, error) {
	client, store, err := open(ctx, find, dir)
	switch {
	case err != nil:
		return nil, nil, err
	case client != nil:
		return client.Inventory(ctx, query), func() error { return nil }, nil
	}
	objects, err := Find(store, nil, query)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return objects, store.Close, nil
}

// Find finds objects in an open state. Streams that are not configured any more are part of it.
func Find(store *checkpoint.Store, streams []control.Stream, q control.Query) (iter.Seq2[control.Object, error], error) {
	known, err := control.SavedStreams(store)
	if err != nil {
		return nil, err
	}
	for i := range known {
		name := known[i].String()
		covered := func(s control.Stream) bool { return s.Name == name || s.Name == known[i].Resource.String() }
		if !slices.ContainsFunc(streams, covered) {
			streams = append(streams, control.Stream{Name: name})
		}
	}
	var names []string
	if q.Resource != "" {
		names = strings.Split(q.Resource, ",")
	}
	meant, err := control.Resolve(streams, names)
	if err != nil {
		return nil, err
	}
	sinks, err := store.KnownSinks()
	if err != nil {
		return nil, err
	}
	if sinks, err = control.ResolveSink(sinks, q.Sink); err != nil {
		return nil, err
	}
	return control.Find(store, sinks, meant, q), nil
}

// onStopped changes the state of a stopped exporter, whose sinks how is told. The state is there already: a wrong path
// must neither be made a state nor be answered with success.
func onStopped(ctx context.Context, dir string, how func(store *checkpoint.Store, sinks []string) error) (err error) {
	if err := probe(ctx, dir); err != nil {
		return Explain(err)
	}
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{})
	if err != nil {
		return Explain(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	sinks, err := store.KnownSinks()
	if err != nil {
		return err
	}
	return how(store, sinks)
}

// SetPosition makes a stream of a stopped exporter continue from a version, for the named sink or with "" for all, and
// returns the version before.
func SetPosition(ctx context.Context, dir, stream, sinkName, version string) (was string, err error) {
	err = onStopped(ctx, dir, func(store *checkpoint.Store, sinks []string) error {
		streams, err := control.SavedStreams(store)
		if err != nil {
			return err
		}
		if sinkName != "" && !slices.Contains(sinks, sinkName) {
			return unknownSink(dir, sinkName, sinks)
		}
		var names []string
		for i := range streams {
			names = append(names, streams[i].String())
		}
		at := slices.Index(names, stream)
		if at < 0 {
			return usage.Errorf("--stream %q: the state in %s has no such stream: it has %s", stream, dir, cmp.Or(strings.Join(names, ", "), "none"))
		}
		if sinkName != "" {
			sinks = []string{sinkName}
		}
		was, err = store.SetPlaces(sinks, &streams[at], version)
		return err
	})
	return was, err
}

func unknownSink(dir, name string, known []string) error {
	return usage.Errorf("sink %q: the state in %s has no such sink: it has %s", name, dir, strings.Join(known, ", "))
}

// ForgetSink gives up what the state of a stopped exporter has for a sink.
func ForgetSink(ctx context.Context, dir, name string) error {
	return onStopped(ctx, dir, func(store *checkpoint.Store, sinks []string) error {
		if !slices.Contains(sinks, name) {
			return unknownSink(dir, name, sinks)
		}
		return store.Forget(name)
	})
}

// Reset removes a state also where it is damaged or newer.
func Reset(ctx context.Context, dir string) error {
	if err := probe(ctx, dir); errors.Is(err, checkpoint.ErrNoState) {
		return err
	}
	return Explain(checkpoint.Discard(dir))
}

// probe opens the state and leaves it as it is. A wrong path must neither be made a state nor be answered with success.
func probe(ctx context.Context, dir string) error {
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return store.Close()
}

// Explain adds where else to look while an exporter runs.
func Explain(err error) error {
	if _, is := errors.AsType[*checkpoint.InUseError](err); is {
		return fmt.Errorf("%w (exporter checkpoint show also shows a running exporter's state)", err)
	}
	return err
}
