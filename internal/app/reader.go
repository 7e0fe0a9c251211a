package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/file"
	"github.com/kubecdc/kubecdc/internal/sink/kafka"
	"github.com/kubecdc/kubecdc/internal/sink/nats"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// OpenLog makes what reads the log of one of the configuration's sinks. The API server is asked only for the topics of a Kafka
// sink.
func OpenLog(ctx context.Context, to Access, cfg *config.Config, s *config.Sink, start sink.Start) (sink.Reader, error) {
	newLogger(io.Discard, cfg.Log)
	c := &cluster{name: cfg.Cluster}
	if s.Kind() == config.KindKafka || s.Kind() == config.KindNATS && c.name == "" {
		var err error
		if c, err = findCluster(to, cfg); err != nil {
			return nil, err
		}
	}
	if s.Kind() == config.KindKafka {
		if _, err := c.resolve(ctx, cfg.Resources); err != nil {
			return nil, err
		}
	}
	return newReader(s, c, start)
}

// newReader makes what reads a sink's log back.
func newReader(s *config.Sink, c *cluster, start sink.Start) (sink.Reader, error) {
	reader, err := readerOf(s, c, start)
	if err != nil {
		return nil, usage.Errorf("sink %s: %w", s.Name, err)
	}
	return reader, nil
}

func readerOf(s *config.Sink, c *cluster, start sink.Start) (sink.Reader, error) {
	switch s.Kind() {
	case config.KindKafka:
		topics, err := kafkaRoutes(s.Kafka, c)
		if err != nil {
			return nil, err
		}
		if err := c.checkTopics(s, topics); err != nil {
			return nil, err
		}
		return kafka.NewReader(kafkaOptions(s, c, topics, deaf{}), start)
	case config.KindNATS:
		_, subjects, err := natsRoutes(s.NATS, c)
		if err != nil {
			return nil, err
		}
		return nats.NewReader(natsOptions(s, c, subjects), start)
	case config.KindStdout:
		return nil, errors.New("standard output cannot be read back: choose another sink")
	}
	return file.NewReader(s.File.Path, start)
}

// checkTopics refuses a template whose topics are known only from records.
func (c *cluster) checkTopics(sink *config.Sink, routes encode.Routes) error {
	wants := c.wantedBy(sink)
	for _, s := range c.streams() {
		stream := &s.stream
		topic, isTopic := routes.To(stream).(*encode.Topic)
		if !isTopic || wants != nil && !wants(stream) {
			continue
		}
		if _, fixed := topic.Fixed(stream); !fixed {
			return fmt.Errorf("its topics cannot be listed beforehand: kafka.topic %q, or one of kafka.topics, names a topic for each namespace, object or label of %s: read them with Kafka's own tools",
				sink.Kafka.Topic, stream)
		}
	}
	return nil
}

// severalClusters says whether other clusters may write to the same place, so that only the records of this one count.
func severalClusters(s *config.Sink, name string) bool {
	stream := &change.Stream{Resource: change.Resource{Name: "x", Version: "v1"}}
	rec := &change.Record{Stream: stream, Key: change.Key{Namespace: "x", Name: "x"}}
	switch s.Kind() {
	case config.KindKafka:
		here, err := encode.NewTopic(s.Kafka.Topic, name)
		there, err2 := encode.NewTopic(s.Kafka.Topic, name+"-other")
		return errors.Join(err, err2) == nil && here.Of(rec) == there.Of(rec)
	case config.KindNATS:
		return s.NATS.Shared
	}
	return false
}
