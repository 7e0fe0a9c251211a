package app

import (
	"maps"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/sink/kafka"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
)

// kafkaRoutes are the topics of the sink's records.
func kafkaRoutes(k *config.Kafka, c *cluster) (encode.Routes, error) {
	topic, err := encode.NewTopic(k.Topic, c.name)
	if err != nil {
		return encode.Routes{}, err
	}
	return c.routes(topic, k.Topics, func(template string) (encode.Destination, error) { return encode.NewTopic(template, c.name) })
}

func kafkaOptions(s *config.Sink, c *cluster, topics encode.Routes, told hearer) kafka.Options {
	k := s.Kafka
	options := kafka.Options{
		Wire:   wire.Options{Brokers: k.Brokers, TLS: kafkaTLS(k.TLS), SASL: kafkaSASL(k.SASL)},
		Topics: c.topicsOf(s, topics), Delivery: k.Delivery, Compression: k.Compression,
		Create: *k.Create, Partitions: k.Partitions, Replication: k.Replication, Cleanup: k.Cleanup,
		Retention: time.Duration(k.Retention), Configs: k.TopicSettings(), Retry: retried(told, s.Name),
		Judge: c.judge(!severalClusters(s, c.name)), Notice: func(text string) { told.Noticed(s.Name, text) },
	}
	if hasLabels(k) {
		options.LabelTopics = k.LabelTopics
		options.Made = func(topics int) { told.LabelTopics(s.Name, topics) }
	}
	options.TransactionalID = k.TransactionalID
	if options.TransactionalID == "" {
		options.TransactionalID = "kubecdc-" + c.name + "-" + s.Name
	}
	return options
}

// hasLabels says whether labels choose topics.
func hasLabels(k *config.Kafka) bool {
	return slices.ContainsFunc(append(slices.Collect(maps.Values(k.Topics)), k.Topic), func(template string) bool {
		topic, err := encode.NewTopic(template, "")
		return err == nil && topic.Labelled()
	})
}

// topicsOf are the topics of the streams that the sink takes, but for those that only a record's namespace, name or
// label tells. What frames their records has its topic without one.
func (c *cluster) topicsOf(s *config.Sink, routes encode.Routes) []string {
	wants := c.wantedBy(s)
	var topics []string
	streams := c.streams()
	for i := range streams {
		stream := &streams[i].stream
		topic, isTopic := routes.To(stream).(*encode.Topic)
		if !isTopic || wants != nil && !wants(stream) {
			continue
		}
		topics = append(topics, topic.OfFrames(stream))
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

func kafkaTLS(t *config.TLS) *wire.TLS {
	if t == nil {
		return nil
	}
	return &wire.TLS{CAFile: t.CA, CertFile: t.Cert, KeyFile: t.Key, ServerName: t.ServerName}
}

func kafkaSASL(s *config.SASL) *wire.SASL {
	if s == nil {
		return nil
	}
	sasl := &wire.SASL{
		Mechanism: s.Mechanism, User: s.User, Password: s.Password.Reveal(), PasswordFile: s.PasswordFile, Region: s.Region,
	}
	if o := s.OAuth; o != nil {
		sasl.OAuth = &wire.OAuth{
			TokenURL: o.TokenURL, ClientID: o.ClientID, ClientSecret: o.ClientSecret.Reveal(), ClientSecretFile: o.ClientSecretFile,
			Scopes: o.Scopes, Audience: o.Audience, CAFile: o.CA, Extensions: o.Extensions,
		}
	}
	return sasl
}
