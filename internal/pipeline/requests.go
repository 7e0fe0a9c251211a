package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// Request asks a running pipeline for full snapshots.
type Request struct {
	Reason  change.Reason // change.Requested
	Streams []string      // names as of change.Stream.String; none is all
	Sink    string        // "" is every sink that takes the stream
	// Answer is told nil when the request is durable, so that it survives a crash, or an error that names what is
	// unknown and what there is. It must have room for one.
	Answer chan<- error
}

// serveRequests answers requests until ctx ends.
func (r *run) serveRequests(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case request, open := <-r.Requests:
			if !open {
				return
			}
			err := r.request(&request)
			select {
			case request.Answer <- err:
			default: // nobody listens
			}
		}
	}
}

// request owes the snapshots. The same request twice is two snapshots, unless the first has not begun.
func (r *run) request(request *Request) error {
	if request.Reason != change.Requested {
		return fmt.Errorf("ask for a snapshot of reason %q: only %q can be asked for", request.Reason, change.Requested)
	}
	streams, err := r.chosenStreams(request.Streams)
	if err != nil {
		return err
	}
	sinks, err := r.chosenSinks(request.Sink)
	if err != nil {
		return err
	}
	var pendingSnapshots []checkpoint.PendingSnapshot
	for _, l := range sinks {
		pendingSnapshots = append(pendingSnapshots, r.pendingSnapshots(l.Name, change.Requested, func(s *change.Stream) bool {
			return l.Takes(s) && slices.Contains(streams, s.String())
		})...)
	}
	if len(pendingSnapshots) == 0 {
		return fmt.Errorf("ask for a snapshot of %s: no sink that is asked for takes it: choose others of %s",
			strings.Join(streams, ", "), r.taken(sinks))
	}
	return r.owe(pendingSnapshots, nil)
}

// chosenStreams are the named ones, or all.
func (r *run) chosenStreams(names []string) ([]string, error) {
	sources := r.sources()
	all := make([]string, len(sources))
	for i, s := range sources {
		all[i] = s.Stream.String()
	}
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("ask for a snapshot of %q: there is no such stream: choose of %s", name, strings.Join(all, ", "))
		}
	}
	return names, nil
}

// chosenSinks is the named one, or all.
func (r *run) chosenSinks(name string) ([]*listener, error) {
	if name == "" {
		return r.listeners, nil
	}
	all := make([]string, len(r.listeners))
	for i, l := range r.listeners {
		if all[i] = l.Name; l.Name == name {
			return r.listeners[i : i+1], nil
		}
	}
	return nil, fmt.Errorf("ask for a snapshot for sink %q: there is no such sink: choose of %s", name, strings.Join(all, ", "))
}

// taken are the streams that one of the sinks takes.
func (r *run) taken(sinks []*listener) string {
	var names []string
	for _, s := range r.sources() {
		if slices.ContainsFunc(sinks, func(l *listener) bool { return l.Takes(&s.Stream) }) {
			names = append(names, s.Stream.String())
		}
	}
	return strings.Join(names, ", ")
}
