package app

import (
	"fmt"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// narrow gives the sinks their own rules. The sinks are those of the configuration, in its order.
func narrow(sinks []delivery.Sink, cfg *config.Config, key []byte, failed func(*change.Record, error)) error {
	var errs []error
	for i := range sinks {
		name := sinks[i].Name
		made, err := selection.ShapeForSink(cfg, &cfg.Sinks[i], key, func(rec *change.Record, err error) {
			failed(rec, fmt.Errorf("the rules of sink %s: %w", name, err))
		})
		if errs = append(errs, err); made != nil {
			sinks[i].Narrow = made.Narrowed
		}
	}
	return usage.Several("sinks", errs...)
}
