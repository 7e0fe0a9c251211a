package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Describe is prometheus.Collector's. It describes nothing, since to collect reads the whole inventory once, which a
// takeover need not wait for.
func (t shown) Describe(chan<- *prometheus.Desc) {}

// Collect is prometheus.Collector's. It reads the inventory's size from the store where that changed in bulk.
func (t shown) Collect(out chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, name := range t.Options.Sinks {
		if t.CountLetters == nil {
			break
		}
		if n, err := t.CountLetters(name); err == nil {
			gauge(t.gauges.deadLetters, float64(n), name)
		}
	}
	if t.StateLog != nil {
		gauge(t.gauges.stateLogLag, t.StateLog().LagSeconds)
	}
	if t.Leadership != nil {
		leads := t.Leadership()
		gauge(t.gauges.leader, oneIf(leads.Leads))
		if leads.Standby != nil {
			gauge(t.gauges.standbyLag, leads.Standby.LagSeconds)
		}
		out <- prometheus.MustNewConstMetric(t.gauges.takeovers, prometheus.CounterValue, float64(leads.Takeovers))
	}
	t.look()
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, s := range t.states.streams {
		gauge(t.gauges.history, s.history(now, s.oldest()).Seconds(), name)
		gauge(t.gauges.historyLeft, s.historyLeft(now, s.oldest()).Seconds(), name)
		for _, state := range streamStates() {
			gauge(t.gauges.streamState, oneIf(s.standing() == state), name, state)
		}
		for sinkName, taker := range s.Sinks {
			if taker.ResourceVersion != "" {
				gauge(t.gauges.positionAge, age(now, taker.moved), name, sinkName)
			}
			if n, err := t.countObjects(s, sinkName); err == nil {
				gauge(t.gauges.inventory, float64(n), name, sinkName)
			}
		}
	}
	for name, s := range t.states.sinks {
		for _, state := range sinkStates() {
			gauge(t.gauges.sinkState, oneIf(s.State == state), name, state)
		}
		gauge(t.gauges.queueBytes, float64(s.QueueBytes), name)
		gauge(t.gauges.queueRecords, float64(s.QueueRecords), name)
		gauge(t.gauges.spoolBytes, float64(s.SpoolBytes), name)
		gauge(t.gauges.oldestUnacked, age(now, s.oldest), name)
		gauge(t.gauges.sinkStopped, oneIf(s.State == stopped), name)
		if s.Asking != nil {
			gauge(t.gauges.signalsUp, oneIf(s.Asking.isUp()), name)
		}
	}
}
