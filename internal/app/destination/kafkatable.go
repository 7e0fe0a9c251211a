package destination

import (
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/encode"
	"github.com/kubecdc/kubecdc/internal/usage"
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
		if why := misfit(topic.OfFrames(stream)); why != "" {
			return usage.Errorf("kafka.topic: topic %s is a table, and %s, or name another topic", topic.OfFrames(stream), why)
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
		key, resource := t.keyOf(stream), stream.Resource.String()
		if other, taken := found[key]; taken && other != resource {
			return fmt.Sprintf("objects of %s and %s have the same keys there, and would delete each other: have {resource} in the template of topics or keys", other, resource)
		}
		found[key] = resource
	}
	return ""
}

// keyOf is the key of an object of the stream.
func (t *table) keyOf(stream *change.Stream) string {
	rec := &change.Record{Stream: stream, Key: change.Key{Namespace: "x", Name: "x"}}
	if stream.Resource.ClusterScoped {
		rec.Key.Namespace = ""
	}
	if t.key == nil {
		return rec.Key.String()
	}
	return string(t.key.Append(nil, rec))
}

// leadsTo says whether records of the stream may be in the topic.
func leadsTo(template *encode.Topic, stream *change.Stream, topic string) bool {
	if fixed, one := template.Fixed(stream); one {
		return fixed == topic
	}
	return regexp.MustCompile("^" + template.Pattern(stream) + "$").MatchString(topic) // of quoted parts
}

// reserved says what a topic is for that must have no records.
func reserved(k *config.Kafka, cluster string) func(topic string) string {
	names := map[string]string{}
	for name, what := range k.Reserved {
		names[strings.ReplaceAll(name, "{cluster}", cluster)] = what
	}
	return func(topic string) string { return names[topic] }
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
