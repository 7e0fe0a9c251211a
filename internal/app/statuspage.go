package app

import (
	"net/http"

	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/httpserver"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/page"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/internal/telemetry"
)

// observed is the telemetry of this run, and the page that shows it.
func (a *assembly) observed(deadLetters *deadLetters) (*telemetry.Telemetry, *page.Page, error) {
	var t *telemetry.Telemetry
	queues, records, spools := map[string]int{}, map[string]int{}, map[string]int64{}
	for _, s := range a.cfg.Sinks {
		queues[s.Name], records[s.Name] = int(s.Queue.Bytes), s.Queue.Records
		if s.Queue.Spool > 0 {
			spools[s.Name] = int64(s.Queue.Spool)
		}
	}
	shown := page.New(page.Options{Status: func() any { return t.Status() }, Queues: queues, Records: records, Spools: spools, Private: control.Refusal})
	options, err := a.telemetryOptions(deadLetters)
	if err != nil {
		return nil, nil, err
	}
	options.Received, options.Spools = shown.Received, spools
	t = telemetry.New(options)
	return t, shown, nil
}

func (a *assembly) telemetryOptions(deadLetters *deadLetters) (telemetry.Options, error) {
	options := telemetry.Options{
		Version: a.options.Access.Version, ClusterName: a.cluster.Name, ClusterUID: a.cluster.UID, Logger: a.logger, CountObjects: a.countObjects, CountLetters: deadLetters.count,
		StateLog: a.stateLog.Status(), Leadership: a.term.Standing(),
	}
	places, err := a.store.Places()
	if err != nil {
		return options, err
	}
	options.Positions = map[string]string{}
	for _, s := range a.cluster.Streams() {
		options.Streams = append(options.Streams, s.Stream)
		lowest := checkpoint.Point{}
		for _, resources := range places {
			at := resources[s.Stream.Resource.String()].Lowest(checkpoint.ScopeOf(&s.Stream))
			if at.History != 0 && (lowest.History == 0 || lowest.After(at)) {
				lowest = at
			}
		}
		options.Positions[s.Stream.String()] = lowest.Version
	}
	options.Partial = selection.Following(&a.cluster.Current, func(s *selection.Selected) bool { return s.Selection != source.Selection{} })
	options.Places = map[string]telemetry.Place{}
	for i := range a.cfg.Sinks {
		s := &a.cfg.Sinks[i]
		options.Sinks = append(options.Sinks, s.Name)
		if d, err := destination.Of(s, a.cluster); err == nil { // else building the sinks says so
			options.Places[s.Name] = telemetry.Place{Kind: s.Kind(), Address: d.Address, Format: s.Format}
		}
	}
	return options, nil
}

// countObjects counts the objects of the stream that the sink has.
func (a *assembly) countObjects(sinkName string, stream change.Stream) (int, error) {
	return a.store.CountRows(sinkName, stream.Resource.String(), checkpoint.ScopeOf(&stream))
}

// handler serves what telemetry and the page show to everybody, and what an operator asks to this host.
func handler(t *telemetry.Telemetry, shown *page.Page, questions http.Handler) http.Handler {
	return httpserver.Beside(httpserver.Beside(t.Handler(), questions, control.Paths()), shown.Handler(), page.Paths())
}
