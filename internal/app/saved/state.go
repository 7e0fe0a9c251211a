package saved

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// Read comes from the running exporter, or from the directory of a stopped one.
func Read(ctx context.Context, find func() (*control.Client, error), dir string) (*control.State, error) {
	client, err := find()
	var stopped *control.NotRunningError
	if err == nil {
		return client.Checkpoint(ctx)
	}
	if !errors.As(err, &stopped) {
		return nil, err
	}
	return ReadDir(ctx, dir)
}

// ReadDir reads the directory of a stopped exporter.
func ReadDir(ctx context.Context, dir string) (state *control.State, err error) {
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return control.ReadState(store)
}

// Inventory is what the running exporter, or the state of a stopped one, knows of objects. The returned function closes
// the latter.
func Inventory(ctx context.Context, find func() (*control.Client, error), dir string, query control.Query) (iter.Seq2[control.Object, error], func() error, error) {
	client, err := find()
	var stopped *control.NotRunningError
	if err == nil {
		return client.Inventory(ctx, query), func() error { return nil }, nil
	}
	if !errors.As(err, &stopped) {
		return nil, nil, err
	}
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{ReadOnly: true})
	if err != nil {
		return nil, nil, err
	}
	objects, err := Find(store, nil, query)
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return objects, store.Close, nil
}

// Find finds objects in an open state. Streams that are not configured any more are part of it.
func Find(store *checkpoint.Store, streams []control.Stream, q control.Query) (iter.Seq2[control.Object, error], error) {
	saved, err := store.Streams()
	if err != nil {
		return nil, err
	}
	for _, name := range saved {
		if !slices.ContainsFunc(streams, func(s control.Stream) bool { return s.Name == name }) {
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
	return control.Find(store, meant, q), nil
}

// openStopped opens the state of a stopped exporter to change it. It is there already: a wrong path must neither be
// made a state nor be answered with success.
func openStopped(ctx context.Context, dir string) (*checkpoint.Store, error) {
	if err := probe(ctx, dir); err != nil {
		return nil, Explain(err)
	}
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{})
	return store, Explain(err)
}

// SetPosition makes a stream of a stopped exporter continue from a version, and returns the one before.
func SetPosition(ctx context.Context, dir, stream, version string) (was string, err error) {
	store, err := openStopped(ctx, dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	before, found, err := store.Position(stream)
	if err != nil {
		return "", err
	}
	if !found {
		return "", unknownStream(store, dir, stream)
	}
	after := change.Position{ResourceVersion: version, Complete: true, Epoch: before.Epoch, Selector: before.Selector}
	return before.ResourceVersion, store.SetPosition(stream, after)
}

func unknownStream(store *checkpoint.Store, dir, stream string) error {
	known, err := store.Positions()
	if err != nil {
		return err
	}
	have := "it has none"
	if len(known) > 0 {
		have = "it has " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	}
	return usage.Errorf("--stream %q: the state in %s has no such stream: %s", stream, dir, have)
}

// ForgetSink gives up what the state of a stopped exporter has for a sink.
func ForgetSink(ctx context.Context, dir, name string) (err error) {
	store, err := openStopped(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	known, err := store.Sinks()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(known), func(sink string) bool { return sink == name })
	if len(left) == len(known) {
		return usage.Errorf("sink %q: the state in %s has no such sink: it has %s", name, dir, strings.Join(known, ", "))
	}
	return store.Retain(left)
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
	var inUse *checkpoint.InUseError
	if errors.As(err, &inUse) {
		return fmt.Errorf("%w (exporter checkpoint show also shows a running exporter's state)", err)
	}
	return err
}

// Open opens the state, or makes it.
func Open(ctx context.Context, dir string, opts checkpoint.Options) (*checkpoint.Store, error) {
	store, err := checkpoint.Open(ctx, dir, opts)
	if errors.Is(err, checkpoint.ErrNoState) { // where it was to be made
		return nil, fmt.Errorf("make state directory %s: it cannot be created there: choose another with --state-dir, or with state.dir in the configuration", dir)
	}
	return store, err
}
