package pipeline

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/line"
)

// run is one life of the pipeline. It stands on three types, each of which knows only the one before it: who is there
// (crew), what sinks are owed (owing), and how they are opened (opener).
type run struct {
	opener
	resyncer *resyncer
}

func newRun(config *Config) *run {
	r := &run{opener: opener{owing: owing{crew: crew{Config: config, stops: delivery.NewStops(len(config.Sinks))}}}}
	common := delivery.Config{
		ClusterUID: config.ClusterUID, Streams: config.streams(), Store: config.Store, Reshape: config.Reshape, Observer: config.Observer.Observer,
		Stops: r.stops, Lost: r.oweLost, Shape: r.shape, Prove: config.Prove,
	}
	for i, s := range config.Sinks {
		r.listeners = append(r.listeners, &listener{Listener: delivery.New(i, s, &common)})
	}
	var members []line.Member
	for _, l := range r.listeners {
		members = append(members, l.Member())
	}
	r.line = line.New(members, line.Options{ClusterUID: config.ClusterUID, Images: config.Images, MarkLag: config.MarkLag})
	for i, l := range r.listeners {
		l.Seat = r.line.Seat(i)
	}
	r.resyncer = newResyncer(&r.crew)
	r.resyncer.held = r.isHeld
	return r
}

// add makes the stream's source one of the run's, with times of its own for resyncs.
func (r *run) add(s Source) {
	r.sourceMu.Lock()
	defer r.sourceMu.Unlock()
	r.Sources = append(r.Sources, s)
	r.resyncer.join(s)
}

// remove forgets the stream's source.
func (r *run) remove(stream string) {
	r.sourceMu.Lock()
	defer r.sourceMu.Unlock()
	r.Sources = slices.DeleteFunc(r.Sources, func(other Source) bool { return other.Stream.String() == stream })
	r.resyncer.leave(stream)
}
