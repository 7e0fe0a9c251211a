package pipeline

import "github.com/kubecdc/kubecdc/internal/listener"

// Views are how the sinks stand with the streams that they take.
func (set *StreamSet) Views() *listener.Views {
	views := &listener.Views{Streams: map[string][]listener.View{}, Marks: map[string]string{}}
	sources := set.run.all()
	for _, l := range set.run.listeners {
		oldest := l.Oldest()
		for at := range sources {
			s := &sources[at]
			if !l.Takes(&s.Stream) {
				continue
			}
			view, name := l.View(&s.Stream), s.Stream.String()
			if view.Oldest = oldest[name]; view.Waits == "" && s.IsApart != nil && s.IsApart(&l.Intake) {
				view.Waits = listener.ForOthers
			}
			views.Streams[name] = append(views.Streams[name], view)
		}
		views.Marks[l.Name] = l.SavedMark()
	}
	return views
}
