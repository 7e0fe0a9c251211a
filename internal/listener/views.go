package listener

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/fifo"
)

// Views are how the sinks of a run stand.
type Views struct {
	Streams map[string][]View // by the name of the stream
	Marks   map[string]string // by the name of the sink, as they are saved
}

// Views are how the sink stands with those of the streams that it takes, in their order. isApart says of which it is
// read for apart.
func (i *Intake) Views(streams []*change.Stream, isApart func(at int) bool) []View {
	i.mu.Lock()
	life, offered, oldest := i.life, i.follower != nil, map[string]time.Time(nil)
	i.mu.Unlock()
	oldest = query(i, (*fifo.Backlog).OldestOf)
	views := make([]View, 0, len(streams))
	for at, stream := range streams {
		view := View{Sink: i.Name, Oldest: oldest[stream.String()]}
		i.shown.of(stream, &view)
		switch {
		case !offered && life == Halted:
			view.Waits = ForRepair
		case !offered:
			view.Waits = ForOpening
		case i.Gate != nil && !i.Gate.Admits(stream):
			view.Waits = ForSchema
		case isApart(at):
			view.Waits = ForOthers
		}
		views = append(views, view)
	}
	return views
}

// SavedMark is the mark that is saved.
func (i *Intake) SavedMark() string {
	i.shown.mu.Lock()
	defer i.shown.mu.Unlock()
	return i.shown.mark
}
