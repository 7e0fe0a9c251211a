package app

import (
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/delta"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// narrow gives the sinks their own rules. The sinks are those of the configuration, in its order.
func narrow(sinks []listener.Sink, cfg *config.Config, forms *forms, failed func(*change.Record, error)) error {
	var errs []error
	asks := func(stream *change.Stream) bool {
		today := forms.today(stream, "")
		return today != nil && today.Changes
	}
	for i := range sinks {
		name := sinks[i].Name
		made, err := selection.ShapeForSink(cfg, &cfg.Sinks[i], forms.key, func(rec *change.Record, err error) {
			failed(rec, fmt.Errorf("the rules of sink %s: %w", name, err))
		})
		if errs = append(errs, err); made != nil {
			sinks[i].Narrow = made.Narrowed
		}
		if slices.ContainsFunc(cfg.Resources, func(r config.Resource) bool { return r.Changes }) {
			sinks[i].Narrow = saysChanges(sinks[i].Narrow, asks)
		}
	}
	return usage.Several("sinks", errs...)
}

// saysChanges makes records say what changed, as far as the sink sees it (I9), after the sink's rules; nil is none.
func saysChanges(rules func(*change.Record) *change.Record, asks func(*change.Stream) bool) func(*change.Record) *change.Record {
	var d delta.Delta // of the one goroutine that has the sink
	return func(rec *change.Record) *change.Record {
		narrowed := rec
		if rules != nil {
			narrowed = rules(rec)
		}
		changes := rec.Op == change.Updated || rec.Op == change.Replaced
		if !changes || narrowed.Filtered || narrowed.Withheld != "" || narrowed.Before == nil || narrowed.Object == nil || !asks(rec.Stream) {
			return narrowed
		}
		list, cut, ok := d.Changed(nil, narrowed.Before, narrowed.Object)
		if !ok {
			return narrowed
		}
		told := *narrowed
		told.Changed, told.ChangedCut = list, cut
		return &told
	}
}
