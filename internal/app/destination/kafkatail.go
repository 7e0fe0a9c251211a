package destination

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka"
)

// kafkaTail reads the topics that the templates may lead to, as the brokers have them, whatever an API server serves:
// of a resource that is gone, too. Of these it hands on what belongs there, since other topics may look alike.
type kafkaTail struct {
	sink.Reader
	templates []*encode.Topic
	known     map[string]bool // by a topic and a resource: whether the resource's records may be in the topic
}

func newKafkaTail(of *table, options kafka.Options, start sink.Start) (sink.Reader, error) {
	t := &kafkaTail{templates: templatesOf(of.sink.Kafka, of.cluster.Name), known: map[string]bool{}}
	options.Topics, options.Found, options.Others = nil, nil, t.matching("")
	var err error
	t.Reader, err = kafka.NewReader(options, start)
	return t, err
}

// matching are the topics that records of the resource can be in; "" is any.
func (t *kafkaTail) matching(resource string) *regexp.Regexp {
	patterns := make([]string, len(t.templates))
	for i, template := range t.templates {
		patterns[i] = template.PatternOf(resource)
	}
	return regexp.MustCompile("^(" + strings.Join(patterns, "|") + ")$") // of quoted parts
}

// Read is as in sink.Reader.
func (t *kafkaTail) Read(ctx context.Context, each func(*sink.Stored) error) error {
	return t.Reader.Read(ctx, func(m *sink.Stored) error {
		id, err := change.ParseAnyID(m.Header(sink.HeaderID))
		if err != nil || !t.holds(m.Destination, id.Resource) {
			return nil // nobody's of us, or not here
		}
		return each(m)
	})
}

func (t *kafkaTail) holds(topic, resource string) bool {
	at := topic + "/" + resource
	holds, known := t.known[at]
	if !known {
		holds = t.matching(resource).MatchString(topic)
		t.known[at] = holds
	}
	return holds
}

// kafkaNeeds is the name of the cluster where it is in a topic. Where nothing is in all topics of a template, only the
// streams tell which of the brokers' topics are meant.
func kafkaNeeds(s *config.Sink) need {
	if slices.ContainsFunc(templatesOf(s.Kafka, ""), func(t *encode.Topic) bool { return !t.IsDistinct() }) {
		return streams
	}
	if strings.Contains(strings.Join(slices.AppendSeq([]string{s.Kafka.Topic}, maps.Values(s.Kafka.Topics)), ""), "{cluster}") {
		return clusterName
	}
	return nothing
}

// templatesOf are all templates of the sink's topics that are any.
func templatesOf(k *config.Kafka, cluster string) (all []*encode.Topic) {
	for _, text := range append(slices.Sorted(maps.Values(k.Topics)), k.Topic) {
		if template, err := encode.NewTopic(text, cluster); err == nil {
			all = append(all, template)
		}
	}
	return all
}
