package destination

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka"
)

// table is what readers make of a sink's topics who know the newest message of each key alone.
type table struct {
	sink    *config.Sink
	cluster *cluster.Cluster
	routes  encode.Routes
	key     *encode.Text // of an object's messages; nil is the format's
}

// check finds out before anything is written that such readers would take objects for others.
func (t *table) check() error {
	misfit := t.misfit
	if !t.sink.Kafka.Compacts() {
		if misfit = t.rivals; t.sink.Format != encode.FormatObject {
			return nil
		}
	}
	for stream, topic := range routed(t.cluster, t.sink, t.routes) {
		if why := misfit(topic.OfStream(stream)); why != "" {
			return usage.Errorf("kafka.topic: topic %s is a table, and %s, or name another topic", topic.OfStream(stream), why)
		}
	}
	return nil
}

// misfit says why the topic must not be compacted; "" is that it may be.
func (t *table) misfit(topic string) string {
	key := t.sink.Kafka.Key
	switch {
	case t.sink.Patched():
		return uncompacted
	case !encode.NamesObject(key):
		return fmt.Sprintf("the key %q is that of several objects, which would delete each other: have {namespace}/{name} in it", key)
	}
	for stream, template := range routed(t.cluster, t.sink, t.routes) {
		if placeholder := template.Changing(); placeholder != "" && leadsTo(template, stream, topic) {
			return fmt.Sprintf("{%s} in the template of topics can change, so that an object would stay in it as it was: leave it out", placeholder)
		}
	}
	return t.rivals(topic)
}

// rivals names two resources whose objects have the same keys in the topic; "" is none.
func (t *table) rivals(topic string) string {
	found := map[string]string{}
	for stream, template := range routed(t.cluster, t.sink, t.routes) {
		if stream.IsActors() || !leadsTo(template, stream, topic) {
			continue
		}
		rec, resource := &change.Record{Stream: stream, Key: change.Key{Namespace: "x", Name: "x"}}, stream.Resource.String()
		if stream.Resource.ClusterScoped {
			rec.Key.Namespace = ""
		}
		key := rec.Key.String()
		if t.key != nil {
			key = string(t.key.Append(nil, rec))
		}
		if other, taken := found[key]; taken && other != resource {
			return fmt.Sprintf("objects of %s and %s have the same keys there, and would delete each other: have {resource} in the template of topics or keys", other, resource)
		}
		found[key] = resource
	}
	return ""
}

// leadsTo says whether records of the stream may be in the topic.
func leadsTo(template *encode.Topic, stream *change.Stream, topic string) bool {
	if fixed, one := template.Fixed(stream); one {
		return fixed == topic
	}
	return regexp.MustCompile("^" + template.Pattern(stream) + "$").MatchString(topic) // of quoted parts
}

// uncompacted is why patches need a log that keeps more than the last record of each object.
const uncompacted = "updates are patches of records that it would not keep: choose updates: whole"

// routed are the streams that the sink takes, with their topics.
func routed(c *cluster.Cluster, s *config.Sink, routes encode.Routes) iter.Seq2[*change.Stream, *encode.Topic] {
	return func(yield func(*change.Stream, *encode.Topic) bool) {
		wants, streams := c.WantedBy(s), c.Streams()
		for i := range streams {
			stream := &streams[i].Stream
			topic, isTopic := routes.To(stream).(*encode.Topic)
			if isTopic && (wants == nil || wants(stream)) && !yield(stream, topic) {
				return
			}
		}
		if actors := change.Actors(); s.Actors {
			if topic, isTopic := routes.To(&actors).(*encode.Topic); isTopic {
				yield(&actors, topic)
			}
		}
	}
}

// form is how a sink's topics and keys are made, as its mark has it.
type form struct {
	Key    string            `json:"key"`
	Topic  string            `json:"topic"`
	Topics map[string]string `json:"topics,omitempty"`
}

// form is the present one.
func (t *table) form() []byte {
	k := t.sink.Kafka
	now := form{"namespace/name", k.Topic, k.Topics}
	switch {
	case k.Key != "":
		now.Key = "of template " + k.Key
	case t.sink.Format == encode.FormatDebezium && k.Registry != nil:
		now.Key = "of format debezium with a registry, as avro"
	case t.sink.Format == encode.FormatDebezium:
		now.Key = "of format debezium"
	}
	text, err := json.Marshal(now)
	if err != nil {
		return nil // no text gets so far
	}
	return text
}

// changed says in what topics and keys are made otherwise than before, "" is nothing. It looks at streams that had a
// topic then.
func (t *table) changed(before []byte, had func(topic string) bool) string {
	var old, now form
	if json.Unmarshal(before, &old) != nil || json.Unmarshal(t.form(), &now) != nil {
		return ""
	}
	if old.Key != now.Key {
		return fmt.Sprintf("keys were %s, and are %s now", old.Key, now.Key)
	}
	routes, err := kafkaRoutes(&config.Sink{Kafka: &config.Kafka{Topic: old.Topic, Topics: old.Topics}}, t.cluster)
	if err != nil {
		return ""
	}
	for stream, topic := range routed(t.cluster, t.sink, t.routes) {
		was, isTopic := routes.To(stream).(*encode.Topic)
		if isTopic && had(was.OfStream(stream)) && was.Pattern(stream) != topic.Pattern(stream) {
			return fmt.Sprintf("records of %s went to topic %s, and go to %s now", stream, was.OfStream(stream), topic.OfStream(stream))
		}
	}
	return ""
}

// goesOn refuses keys of the stream's objects that begin with another schema's id than those that a table has.
func (t *table) goesOn(at sink.Mark, stream *change.Stream, keys uint32) error {
	topic, isTopic := t.routes.To(stream).(*encode.Topic)
	return kafka.CheckKey(at, keys, func(name string) bool { return isTopic && leadsTo(topic, stream, name) })
}

// kafkaRoutes are the topics of the sink's records.
func kafkaRoutes(s *config.Sink, c *cluster.Cluster) (encode.Routes, error) {
	topic, err := topicOf(s, s.Kafka.Topic, c.Name)
	if err != nil {
		return encode.Routes{}, err
	}
	return routesOf(c, topic, s.Kafka.Topics, func(template string) (encode.Destination, error) { return topicOf(s, template, c.Name) })
}

// topicOf is the template as the sink uses it.
func topicOf(s *config.Sink, template, cluster string) (*encode.Topic, error) {
	topic, err := encode.NewTopic(template, cluster)
	if err == nil && s.FramesAside() {
		topic = topic.FramesAside()
	}
	return topic, err
}

// routesOf gives the streams of the resources that have templates of their own what parse makes of them, and leaves the
// others to the common one. Of several names of a stream the first counts that has a template: its own comes before a
// wildcard.
func routesOf(c *cluster.Cluster, others encode.Destination, templates map[string]string, parse func(string) (encode.Destination, error)) (encode.Routes, error) {
	made := map[string]encode.Destination{}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		own, err := parse(templates[name])
		if err != nil {
			return encode.Routes{}, fmt.Errorf("resource %q: %w", name, err)
		}
		made[name] = own
	}
	routed := selection.Following(&c.Current, func(s *selection.Selected) encode.Destination {
		for _, name := range s.Names {
			if own, found := made[name]; found {
				return own
			}
		}
		return nil
	})
	return encode.Routes{Others: others, Own: routed}, nil
}

// headersOf are the configured headers, by name.
func headersOf(templates map[string]string, cluster string) (headers []encode.Header, err error) {
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		text, err := encode.NewText(templates[name], cluster)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		headers = append(headers, encode.Header{Name: name, Text: text})
	}
	return headers, nil
}
