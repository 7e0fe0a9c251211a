package destination

import (
	"fmt"
	"slices"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/sink/kafka"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// kafkaHearer hears signals, nil where none are configured.
func kafkaHearer(of *table) (func(*RequestHandler) (Hearer, error), error) {
	s, c, routes, configured := of.sink, of.cluster, of.routes, of.sink.Kafka.Signals
	if configured == nil {
		return nil, nil
	}
	hearing := kafka.SignalOptions{Cluster: []byte(c.Name)}
	var err error
	if hearing.Topic, err = signalTopic(configured.Topic, c, s, routes); err != nil {
		return nil, usage.Errorf("kafka.signals.topic: %v", err)
	}
	if configured.Notifications != "" {
		if hearing.Notifications, err = signalTopic(configured.Notifications, c, s, routes); err != nil {
			return nil, usage.Errorf("kafka.signals.notifications: %v", err)
		}
	}
	return func(d *RequestHandler) (Hearer, error) {
		hearing := hearing
		hearing.Sink = kafkaOptions(of, Nop{})
		hearing.Group = hearing.Sink.TransactionalID
		if d.Signals != nil {
			hearing.Handler, hearing.Place = d.Signals(hearing.Notifications != "")
			hearing.Heard, hearing.Sink.Notice = d.Hears, d.Noticed
			hearing.Sink.Retry = func(_ string, err error) { d.Hears(err) }
		}
		return kafka.NewSignals(hearing)
	}, nil
}

// signalTopic is the topic of the template, in which there must be no records of the sink. Those of what a wildcard
// found are refused when they come, since the topic is reserved.
func signalTopic(template string, c *cluster.Cluster, s *config.Sink, routes encode.Routes) (string, error) {
	made, err := encode.NewTopic(template, c.Name)
	if err != nil {
		return "", err
	}
	name := made.OfFrames(&change.Stream{})
	_, found := topicsOf(c, s, routes)
	for stream, topic := range routed(c, s, routes) {
		if leadsTo(topic, stream, name) && !slices.Contains(found, topic.OfFrames(stream)) {
			return "", fmt.Errorf("records of %s go to topic %s: choose another topic", stream, name)
		}
	}
	return name, nil
}
