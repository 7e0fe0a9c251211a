package app

import (
	"io"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/file"
	"github.com/kubecdc/kubecdc/internal/sink/kafka"
	"github.com/kubecdc/kubecdc/internal/sink/nats"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// hearer is told what sinks do, each under its name.
type hearer interface {
	Retried(name, reason string, err error)
	Noticed(name, text string)
	LabelTopics(name string, topics int)
}

// deaf hears nothing.
type deaf struct{}

func (deaf) Retried(string, string, error) {}
func (deaf) Noticed(string, string)        {}
func (deaf) LabelTopics(string, int)       {}

// buildSinks makes a sink of each configured one. Every one that is wrong is in the error.
func buildSinks(cfg *config.Config, c *cluster, stdout io.Writer, told hearer) ([]pipeline.Sink, error) {
	var sinks []pipeline.Sink
	var errs []error
	for i := range cfg.Sinks {
		built, err := buildSink(&cfg.Sinks[i], c, stdout, told)
		sinks, errs = append(sinks, built), append(errs, err)
	}
	return sinks, usage.Several("sinks", errs...)
}

func buildSink(s *config.Sink, c *cluster, stdout io.Writer, told hearer) (pipeline.Sink, error) {
	target, destination, err := buildTarget(s, c, stdout, told)
	if err != nil {
		return pipeline.Sink{}, usage.Errorf("sink %s: %w", s.Name, err)
	}
	oversize, err := oversizeOf(s)
	if err != nil {
		return pipeline.Sink{}, usage.Errorf("sink %s: %w", s.Name, err)
	}
	return pipeline.Sink{
		Name:   s.Name,
		Target: target,
		Encoder: encode.NewEncoder(encode.Options{
			Cluster: c.name, ClusterUID: c.uid, Version: c.version, Format: s.Format, Transport: transport(s), Destination: destination,
			Tombstones: s.Kafka != nil && *s.Kafka.Tombstones,
		}),
		Wants:    c.wantedBy(s),
		Queue:    fifo.Limit{Bytes: int(s.Queue.Bytes), Records: s.Queue.Records},
		Coalesce: s.Queue.Full == config.FullCoalesce,
		Spool:    int64(s.Queue.Spool),
		Resync:   time.Duration(s.Resync),
		Oversize: oversize,
	}, nil
}

// transport is how the sink carries what is beside a value.
func transport(s *config.Sink) encode.Transport {
	switch s.Kind() {
	case config.KindKafka:
		return encode.Kafka
	case config.KindNATS:
		return encode.NATS
	}
	return encode.File
}

// wantedBy says which streams the sink takes; nil is all.
func (c *cluster) wantedBy(s *config.Sink) func(*change.Stream) bool {
	if len(s.Resources) == 0 {
		return nil
	}
	return following(c, func(chosen *selected) bool {
		return slices.ContainsFunc(chosen.names, func(name string) bool { return slices.Contains(s.Resources, name) })
	})
}

// buildTarget is the only place that knows what kinds of sinks there are.
func buildTarget(s *config.Sink, c *cluster, stdout io.Writer, told hearer) (sink.Sink, encode.Destination, error) {
	switch s.Kind() {
	case config.KindKafka:
		topics, err := kafkaRoutes(s.Kafka, c)
		if err != nil {
			return nil, nil, err
		}
		target, err := kafka.New(kafkaOptions(s, c, topics, told))
		return target, topics, err
	case config.KindNATS:
		routes, subjects, err := natsRoutes(s.NATS, c)
		if err != nil {
			return nil, nil, err
		}
		options := natsOptions(s, c, subjects)
		options.Retry, options.Notice = retried(told, s.Name), func(text string) { told.Noticed(s.Name, text) }
		target, err := nats.New(options)
		return target, routes, err
	}
	target, err := file.New(file.Options{
		Path: s.File.Path, MaxBytes: int64(s.File.Rotate), Keep: s.File.Keep, Stdout: stdout, Retry: retried(told, s.Name),
	})
	return target, nil, err
}

func retried(told hearer, name string) sink.RetryFunc {
	return func(reason string, err error) { told.Retried(name, reason, err) }
}
