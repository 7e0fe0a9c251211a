package main

import (
	"fmt"
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
)

// buildSinks makes a sink of each configured one. Every one that is wrong is in the error.
func buildSinks(cfg *config.Config, c *cluster, stdout io.Writer, retried func(name, reason string, err error)) ([]pipeline.Sink, error) {
	var sinks []pipeline.Sink
	var errs []error
	for i := range cfg.Sinks {
		built, err := buildSink(&cfg.Sinks[i], c, stdout, retried)
		sinks, errs = append(sinks, built), append(errs, err)
	}
	return sinks, several("sinks", errs...)
}

func buildSink(s *config.Sink, c *cluster, stdout io.Writer, retried func(name, reason string, err error)) (pipeline.Sink, error) {
	target, destination, err := buildTarget(s, c, stdout, func(reason string, err error) { retried(s.Name, reason, err) })
	if err != nil {
		return pipeline.Sink{}, usageError{fmt.Errorf("sink %s: %w", s.Name, err)}
	}
	return pipeline.Sink{
		Name:   s.Name,
		Target: target,
		Encoder: encode.NewEncoder(encode.Options{
			Cluster: c.name, ClusterUID: c.uid, Version: version, Format: s.Format, Transport: transport(s), Destination: destination,
			Tombstones: s.Kafka != nil && *s.Kafka.Tombstones,
		}),
		Wants:  c.wantedBy(s),
		Queue:  fifo.Limit{Bytes: int(s.Queue.Bytes), Records: s.Queue.Records},
		Resync: time.Duration(s.Resync),
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
	wanted := map[string]bool{}
	for _, stream := range c.streams {
		if slices.ContainsFunc(stream.names, func(name string) bool { return slices.Contains(s.Resources, name) }) {
			wanted[stream.stream.String()] = true
		}
	}
	return func(stream *change.Stream) bool { return wanted[stream.String()] }
}

// buildTarget is the only place that knows what kinds of sinks there are.
func buildTarget(s *config.Sink, c *cluster, stdout io.Writer, retry sink.RetryFunc) (sink.Sink, encode.Destination, error) {
	switch s.Kind() {
	case config.KindKafka:
		topic, err := encode.NewTopic(s.Kafka.Topic, c.name)
		if err != nil {
			return nil, nil, err
		}
		target, err := kafka.New(kafkaOptions(s, c, topic, retry))
		return target, topic, err
	case config.KindNATS:
		subject, err := encode.NewSubject(s.NATS.Subject, c.name)
		if err != nil {
			return nil, nil, err
		}
		target, err := nats.New(natsOptions(s, subject, retry))
		return target, subject, err
	}
	target, err := file.New(file.Options{
		Path: s.File.Path, MaxBytes: int64(s.File.Rotate), Keep: s.File.Keep, Stdout: stdout, Retry: retry,
	})
	return target, nil, err
}

func natsOptions(s *config.Sink, subject *encode.Subject, retry sink.RetryFunc) nats.Options {
	return nats.Options{
		URL: s.NATS.URL, Stream: s.NATS.Stream, Subjects: []string{subject.Filter()},
		Replicas: s.NATS.Replicas, MaxAge: time.Duration(s.NATS.MaxAge),
		TLS:             natsTLS(s.NATS.TLS),
		CredentialsFile: s.NATS.Credentials, NkeySeedFile: s.NATS.Nkey,
		User: s.NATS.User, Password: s.NATS.Password.Reveal(), Token: s.NATS.Token.Reveal(),
		Name: "kubecdc exporter, sink " + s.Name, Retry: retry,
	}
}

// natsTLS is nil where nothing is configured: the URL's scheme decides then.
func natsTLS(tls config.TLS) *nats.TLS {
	if tls == (config.TLS{}) {
		return nil
	}
	return &nats.TLS{CAFile: tls.CA, CertFile: tls.Cert, KeyFile: tls.Key, ServerName: tls.ServerName, First: tls.First}
}
