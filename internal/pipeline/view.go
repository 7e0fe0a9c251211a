package pipeline

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/listener"
)

// Views are how the sinks stand with the streams that they take.
func (set *StreamSet) Views() *listener.Views {
	views := &listener.Views{Streams: map[string][]listener.View{}, Marks: map[string]string{}}
	sources := set.run.all()
	for _, l := range set.run.listeners {
		var taken []Source
		var streams []*change.Stream
		for at := range sources {
			if l.Takes(&sources[at].Stream) {
				taken, streams = append(taken, sources[at]), append(streams, &sources[at].Stream)
			}
		}
		isApart := func(at int) bool { return taken[at].IsApart != nil && taken[at].IsApart(&l.Intake) }
		for at, view := range l.Views(streams, isApart) {
			name := streams[at].String()
			views.Streams[name] = append(views.Streams[name], view)
		}
		views.Marks[l.Name] = l.SavedMark()
	}
	return views
}
