package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// serveRequests answers requests until ctx ends.
func (o *owing) serveRequests(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case request, open := <-o.Requests:
			if !open {
				return
			}
			err := o.request(&request)
			select {
			case request.Answer <- err:
			default: // nobody listens
			}
		case order, open := <-o.Orders:
			if !open {
				return
			}
			err := o.steer(&order)
			select {
			case order.Answer <- err:
			default: // nobody listens
			}
		}
	}
}

// request owes the snapshots. The same request twice is two snapshots, unless the first has not begun.
func (o *owing) request(request *Request) error {
	if request.Reason != change.Requested {
		return fmt.Errorf("ask for a snapshot of reason %q: only %q can be asked for", request.Reason, change.Requested)
	}
	sinks, err := o.chosenSinks(request.Sink)
	if err != nil {
		return err
	}
	var all []checkpoint.PendingSnapshot
	for _, part := range append([]RequestPart{{request.Streams, request.Limits}}, request.Also...) {
		some, err := o.partOf(sinks, part)
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	return o.oweAll(&checkpoint.Batch{PendingSnapshots: all, Heard: request.Heard})
}

// partOf are the snapshots of one part of a request.
func (o *owing) partOf(sinks []*listener, part RequestPart) (all []checkpoint.PendingSnapshot, err error) {
	streams, err := o.chosenStreams(part.Streams)
	if err != nil {
		return nil, err
	}
	for _, l := range sinks {
		all = append(all, o.pendingSnapshots(l.Name, change.Requested, func(s *change.Stream) bool {
			return l.Takes(s) && slices.Contains(streams, s.String()) && part.Limits.Reach(s)
		})...)
	}
	for i := range all {
		all[i].Limits = part.Limits
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("ask for a snapshot of %s: no sink that is asked for takes it: choose others of %s",
			strings.Join(streams, ", "), o.taken(sinks))
	}
	return all, nil
}

// chosenStreams are the named ones, or all.
func (o *owing) chosenStreams(names []string) ([]string, error) {
	sources := o.sources()
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
func (o *owing) chosenSinks(name string) ([]*listener, error) {
	if name == "" {
		return o.listeners, nil
	}
	all := make([]string, len(o.listeners))
	for i, l := range o.listeners {
		if all[i] = l.Name; l.Name == name {
			return o.listeners[i : i+1], nil
		}
	}
	return nil, fmt.Errorf("ask for a snapshot for sink %q: there is no such sink: choose of %s", name, strings.Join(all, ", "))
}

// taken are the streams that one of the sinks takes.
func (o *owing) taken(sinks []*listener) string {
	var names []string
	for _, s := range o.sources() {
		if slices.ContainsFunc(sinks, func(l *listener) bool { return l.Takes(&s.Stream) }) {
			names = append(names, s.Stream.String())
		}
	}
	return strings.Join(names, ", ")
}
