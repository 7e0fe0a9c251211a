package destination

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/kafka"
	"github.com/kubecdc/kubecdc/internal/sink/kafka/wire"
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
		if d.Signals != nil {
			hearing.Handler, hearing.Place = d.Signals(hearing.Notifications != "")
			hearing.Heard = d.Hears
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
	name := made.OfStream(&change.Stream{})
	_, found := topicsOf(c, s, routes)
	for stream, topic := range routed(c, s, routes) {
		if (leadsTo(topic, stream, name) || topic.OfFrames(stream) == name) && !slices.Contains(found, topic.OfStream(stream)) {
			return "", fmt.Errorf("records of %s go to topic %s: choose another topic", stream, name)
		}
	}
	return name, nil
}

// kafkaDestination is one of topics.
func kafkaDestination(s *config.Sink, c *cluster.Cluster) (*Destination, error) {
	topics, err := kafkaRoutes(s, c)
	if err != nil {
		return nil, err
	}
	var key *encode.Text
	if s.Kafka.Key != "" {
		if key, err = encode.NewText(s.Kafka.Key, c.Name); err != nil {
			return nil, err
		}
	}
	headers, err := headersOf(s.Kafka.Headers, c.Name)
	if err != nil {
		return nil, err
	}
	rows := &table{s, c, topics, key}
	if err := rows.check(); err != nil {
		return nil, err
	}
	options := func(told Observer) kafka.Options { return kafkaOptions(rows, told) }
	hearer, err := kafkaHearer(rows)
	if err != nil {
		return nil, err
	}
	return &Destination{
		encoding: encode.Options{
			Transport: encode.Kafka, Destination: topics, Key: key, Headers: headers,
			Tombstones: *s.Kafka.Tombstones && encode.NamesObject(s.Kafka.Key),
		},
		Shared: sharesTopics(s.Kafka, c.Name), What: "topic " + strings.ReplaceAll(s.Kafka.Topic, "{cluster}", c.Name),
		Registry: s.Kafka.Registry, Hearer: hearer, goesOn: rows.goesOn,
		Places: kafkaPlaces(s, options(Nop{})), Address: strings.Join(s.Kafka.Brokers, ",") + " topic " + s.Kafka.Topic,
		build: func(to Outlet) (sink.Sink, error) {
			writing := options(to.Told)
			writing.AcceptNewKeys = to.AcceptNewKeys
			return kafka.New(writing)
		},
		read: func(start sink.Start) (sink.Reader, error) {
			reading := options(Nop{})
			reading.Others = patternOf(c, s, topics)
			return kafka.NewReader(reading, start)
		},
		tail: func(start sink.Start) (sink.Reader, error) {
			t := &kafkaTail{templates: templatesOf(s, c.Name), known: map[string]bool{}}
			reading := options(Nop{})
			reading.Topics, reading.Found, reading.Others = nil, nil, t.matching("")
			var err error
			t.Reader, err = kafka.NewReader(reading, start)
			return t, err
		},
		StateLog: func(name string, retry sink.RetryFunc) (statelog.Place, error) {
			return kafkaStateLog(options(Nop{}), name, retry)
		},
	}, nil
}

// kafkaStateLog is a compacted topic of one partition, on the brokers of the sink with the options. Only a transaction
// is sure to be fenced.
func kafkaStateLog(of kafka.Options, name string, retry sink.RetryFunc) (statelog.Place, error) {
	configs := map[string]string{"segment.bytes": "67108864", "min.cleanable.dirty.ratio": "0.3"}
	if replicas, given := of.Configs["min.insync.replicas"]; given {
		configs["min.insync.replicas"] = replicas
	}
	options := kafka.Options{
		Wire: of.Wire, Topics: []string{name}, Delivery: kafka.Transactional, TransactionalID: name, Compression: "none",
		Create: of.Create, Partitions: 1, Replication: of.Replication, Cleanup: "compact", Configs: configs, Whole: true, Retry: retry,
	}
	writer, err := kafka.New(options)
	return statelog.Place{
		Name: "topic " + name, Sink: writer,
		Reader: func() (sink.Reader, error) { return kafka.NewReader(options, sink.Start{}) },
		Of:     func(slot string) (string, []byte) { return name, []byte(slot) },
	}, err
}

// sharesTopics says whether another cluster has the same topics.
func sharesTopics(k *config.Kafka, cluster string) bool {
	stream := &change.Stream{Resource: change.Resource{Name: "x", Version: "v1"}}
	rec := &change.Record{Stream: stream, Key: change.Key{Namespace: "x", Name: "x"}}
	here, err := encode.NewTopic(k.Topic, cluster)
	there, err2 := encode.NewTopic(k.Topic, cluster+"-other")
	return errors.Join(err, err2) == nil && here.Of(rec) == there.Of(rec)
}

func kafkaPlaces(s *config.Sink, options kafka.Options) []Place {
	var servers []string
	for _, broker := range s.Kafka.Brokers {
		servers = append(servers, withPort(broker, "9092"))
	}
	var all []Place
	for _, topic := range options.Topics {
		all = append(all, Place{servers: servers, What: "topic " + topic, Key: "kafka.topic"})
	}
	if options.TransactionalID != "" { // it fences in both deliveries
		all = append(all, Place{servers: servers, What: "transactional id " + options.TransactionalID, Key: "kafka.transactionalId"})
	}
	return all
}

func kafkaOptions(of *table, told Observer) kafka.Options {
	s, c, topics, k := of.sink, of.cluster, of.routes, of.sink.Kafka
	var tls *wire.TLS
	if k.TLS != nil {
		tls = &wire.TLS{CAFile: k.TLS.CA, CertFile: k.TLS.Cert, KeyFile: k.TLS.Key, ServerName: k.TLS.ServerName}
	}
	settings := maps.Clone(k.TopicConfig)
	if k.MinInsyncReplicas > 0 {
		if settings == nil {
			settings = map[string]string{}
		}
		settings["min.insync.replicas"] = strconv.Itoa(k.MinInsyncReplicas)
	}
	reserved := map[string]string{} // what topics are for that must have no records
	for name, what := range k.Reserved {
		reserved[strings.ReplaceAll(name, "{cluster}", c.Name)] = what
	}
	options := kafka.Options{
		Wire:     wire.Options{Brokers: k.Brokers, TLS: tls, SASL: kafkaSASL(k.SASL)},
		Delivery: k.Delivery, Compression: k.Compression,
		Create: *k.Create, Partitions: k.Partitions, Replication: k.Replication, Cleanup: k.Cleanup,
		Retention: time.Duration(k.Retention), Configs: settings, Retry: retried(told, s.Name),
		Judge: c.Judge(!sharesTopics(k, c.Name)), Notice: func(text string) { told.Noticed(s.Name, text) },
		Warn: func(text string) { told.Warned(s.Name, text) }, Resync: time.Duration(s.Resync),
		Uncompacted: of.misfit, Reserved: func(topic string) string { return reserved[topic] }, Form: of.form(), Changed: of.changed,
	}
	if c.Task != 0 {
		options.Elsewhere = elsewhere(s, c)
	}
	options.Topics, options.Found = topicsOf(c, s, topics)
	if s.FramesAside() {
		options.Ordered = encode.IsOfFrames
	}
	if slices.ContainsFunc(templatesOf(s, ""), (*encode.Topic).ByObject) {
		options.LabelTopics = k.LabelTopics
		options.Made = func(topics int) { told.LabelTopics(s.Name, topics) }
	}
	options.TransactionalID = cmp.Or(k.TransactionalID, transactionalID(c.Name, c.Task, s.Name))
	return options
}

// transactionalID is that of the sink of the cluster, and of no other one, nor that of a log of the state, by default
// kubecdc-state-CLUSTER: the name of the cluster ends at the first hyphen.
func transactionalID(cluster string, task int, sinkName string) string {
	escaped := strings.NewReplacer("-", "=2D", "=", "=3D").Replace(cluster)
	if escaped == "state" {
		escaped = "=73tate"
	}
	if task > 1 { // the first one's is that of an exporter with one task
		escaped += "=" + strconv.Itoa(task)
	}
	return "kubecdc-" + escaped + "-" + sinkName
}

// topicsOf are the topics of the streams that the sink takes, but for those that only a record's namespace, name or
// label tells, and those of frames. Those that only a stream tells which a wildcard stands for are found.
func topicsOf(c *cluster.Cluster, s *config.Sink, routes encode.Routes) (topics, found []string) {
	isNamed := selection.Following(&c.Current, (*selection.Selected).IsNamed)
	named := map[string]bool{}
	for stream, topic := range routed(c, s, routes) {
		one := isNamed(stream) || topic.OfStream(stream) == topic.OfStream(&change.Stream{})
		for _, name := range []string{topic.OfStream(stream), topic.OfFrames(stream)} {
			named[name] = named[name] || one
		}
	}
	topics = slices.Sorted(maps.Keys(named))
	return topics, slices.DeleteFunc(slices.Clone(topics), func(name string) bool { return named[name] })
}

// patternOf matches the topics that only a record's namespace, name or label tells; nil is none.
func patternOf(c *cluster.Cluster, s *config.Sink, routes encode.Routes) *regexp.Regexp {
	var patterns []string
	for stream, topic := range routed(c, s, routes) {
		if _, fixed := topic.Fixed(stream); !fixed {
			patterns = append(patterns, topic.Pattern(stream))
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	slices.Sort(patterns)
	return regexp.MustCompile("^(" + strings.Join(slices.Compact(patterns), "|") + ")$") // of quoted parts
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

// kafkaTail reads the topics that the templates may lead to, as the brokers have them, whatever an API server serves:
// of a resource that is gone, too. Of these it hands on what belongs there, since other topics may look alike.
type kafkaTail struct {
	sink.Reader
	templates []*encode.Topic
	known     map[string]bool // by a topic and a resource: whether the resource's records may be in the topic
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
func kafkaNeeds(s *config.Sink) (name, streams bool) {
	all := slices.AppendSeq([]string{s.Kafka.Topic}, maps.Values(s.Kafka.Topics))
	streams = slices.ContainsFunc(templatesOf(s, ""), func(t *encode.Topic) bool { return !t.IsDistinct() })
	return strings.Contains(strings.Join(all, ""), "{cluster}"), streams
}

// Moved is a resource that goes from one task to another.
type Moved struct {
	Mark, Given sink.Mark // of the sink, and of that of the task which had the resource
	Resource    string
}

// MarkWith is the sink's mark with what the other one's says of the places of the resource. Only topics can be places
// of one resource: what else a sink writes to, it has for itself.
func MarkWith(s *config.Sink, c *cluster.Cluster, m Moved) (sink.Mark, error) {
	if s.Kafka == nil {
		return m.Mark, nil
	}
	t := &kafkaTail{templates: templatesOf(s, c.Name)}
	return kafka.MarkWith(m.Mark, m.Given, t.matching(m.Resource).MatchString)
}

// elsewhere says which topics are those of resources that other tasks have, and of which this one has nothing any more.
func elsewhere(s *config.Sink, c *cluster.Cluster) func(topic string) bool {
	t := &kafkaTail{templates: templatesOf(s, c.Name), known: map[string]bool{}}
	holds := func(topic string) func(selection.Selected) bool {
		return func(of selection.Selected) bool { return t.holds(topic, of.Stream.Resource.String()) }
	}
	return func(topic string) bool {
		gone := func(of selection.Selected) bool {
			return holds(topic)(of) && !c.Holds(s.Name, of.Stream.Resource.String())
		}
		return !slices.ContainsFunc(c.Streams(), holds(topic)) && slices.ContainsFunc(c.Chosen.Load().Others, gone)
	}
}

// templatesOf are all templates of the sink's topics that are any.
func templatesOf(s *config.Sink, cluster string) (all []*encode.Topic) {
	for _, text := range append(slices.Sorted(maps.Values(s.Kafka.Topics)), s.Kafka.Topic) {
		if template, err := topicOf(s, text, cluster); err == nil {
			all = append(all, template)
		}
	}
	return all
}
