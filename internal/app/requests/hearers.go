package requests

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/app/beside"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// Hear has others ask through the brokers of the sinks that let them, until the returned function is called, which
// waits.
func (h *Handler) Hear(ctx context.Context) (stop func(), err error) {
	var hearers []func(context.Context)
	hearing := map[string]bool{}
	for i := range h.Config.Sinks {
		s := &h.Config.Sinks[i]
		to, err := destination.Of(s, h.Cluster)
		if err != nil {
			return nil, err
		}
		if to.Hearer == nil {
			continue
		}
		d, err := newBrokerHandler(h, s.Name)
		if err != nil {
			return nil, err
		}
		hearer, err := to.Hearer(d.open())
		if err != nil {
			return nil, err
		}
		hearing[s.Name] = true
		hearers = append(hearers, hearer.Run)
	}
	if err := h.forgetHeard(hearing); err != nil {
		return nil, err
	}
	return beside.Run(ctx, hearers...), nil
}

// forgetHeard forgets what was heard through the brokers of other sinks. Were it kept, all that is asked until they are
// heard again would be followed then, however old.
func (h *Handler) forgetHeard(but map[string]bool) error {
	saved, err := h.Store.Hearing()
	if err != nil {
		return err
	}
	forgotten := map[string][]byte{}
	for _, name := range saved {
		if !but[name] {
			forgotten[name] = nil
		}
	}
	return h.Store.Commit(checkpoint.Batch{Heard: forgotten})
}
