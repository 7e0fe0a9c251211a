package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the counters and histograms; what has a present value is read from the state when it is collected.
type metrics struct {
	sourceRecords, sourceBytes, sourceIgnored, sourceGaps, snapshots, corrections, shapeFailures *prometheus.CounterVec
	sinkRecords, sinkRetries, sinkRejected, sinkTrimmed, coalesced, lettersDropped, replayed     *prometheus.CounterVec
	signals, auditEvents, auditRefused, schemasReplaced                                          *prometheus.CounterVec
	sinkWrite, delivery                                                                          *prometheus.HistogramVec
	commit                                                                                       prometheus.Histogram
	labelTopics                                                                                  *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	registered := promauto.With(registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return registered.NewCounterVec(prometheus.CounterOpts{Name: "kubecdc_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		buckets := prometheus.ExponentialBuckets(0.00025, 4, 10) // to 65 seconds
		return registered.NewHistogramVec(prometheus.HistogramOpts{Name: "kubecdc_" + name, Help: help, Buckets: buckets}, labels)
	}
	return &metrics{
		labelTopics: registered.NewGaugeVec(
			prometheus.GaugeOpts{Name: "kubecdc_sink_label_topics", Help: "Topics that labels and names of objects created."}, []string{"sink"}),
		sourceRecords:   counter("source_records_total", "Records read from the API server.", "resource", "op"),
		sourceBytes:     counter("source_bytes_total", "Bytes of the objects read from the API server, after cuts.", "resource"),
		sourceIgnored:   counter("source_ignored_total", "Updates that no sink was told of, since nothing in them matters.", "resource"),
		sourceGaps:      counter("source_gaps_total", "Gaps: how often intermediate changes may be missing.", "resource", "reason"),
		sinkRecords:     counter("sink_records_total", "Records that are durable in the sink.", "sink", "resource"),
		sinkWrite:       histogram("sink_write_seconds", "Time that one batch takes to become durable.", "sink"),
		sinkRetries:     counter("sink_retries_total", "Retries of a sink.", "sink", "reason"),
		sinkRejected:    counter("sink_rejected_total", "Records that a sink refused for good.", "sink", "reason"),
		coalesced:       counter("queue_coalesced_total", "Records that were merged into a newer queued record of the same object.", "sink"),
		sinkTrimmed:     counter("sink_trimmed_total", "Records that were cut to fit into the sink.", "sink"),
		lettersDropped:  counter("dead_letters_dropped_total", "Rejected records that were not kept: the letters reached their limit.", "sink"),
		replayed:        counter("dead_letters_replayed_total", "Dead letters that were sent again and delivered.", "sink"),
		delivery:        histogram("delivery_seconds", "Time from receiving a record until it is durable in the sink.", "sink"),
		commit:          histogram("commit_seconds", "Time to save positions, inventory and marks.").WithLabelValues().(prometheus.Histogram),
		snapshots:       counter("snapshots_total", "Complete snapshots.", "resource", "reason"),
		signals:         counter("signals_total", "What was asked through the sink's broker.", "sink", "result"),
		shapeFailures:   counter("source_misshapen_total", "Objects for which a filter or a redaction failed.", "resource"),
		auditEvents:     counter("audit_events_total", "Events of the audit webhook, by what the sinks are told of them.", "outcome"),
		auditRefused:    counter("audit_refused_total", "Requests and connections that the audit webhook refused.", "reason"),
		corrections:     counter("corrections_total", "Differences that a full snapshot found and no watch had reported.", "resource", "op"),
		schemasReplaced: counter("sink_schemas_replaced_total", "Schemas that a registry had and lost.", "sink"),
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// age is in seconds, 0 for no time, and for one that came while the clock was read.
func age(now, then time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(0, now.Sub(then).Seconds())
}
