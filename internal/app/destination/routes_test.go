package destination

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/test/script"
)

func core(name, kind string) change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: name, Kind: kind}}
}

// crossroads is a cluster of which a wildcard and a name select something.
func crossroads() *cluster.Cluster {
	c := &cluster.Cluster{Name: "c"}
	c.Chosen.Store(&selection.Choice{Streams: []selection.Selected{
		{Stream: core("pods", "Pod"), Names: []string{"po", "*"}},
		{Stream: core("services", "Service"), Names: []string{"*"}},
		{Stream: core("nodes", "Node"), Names: []string{"nodes"}},
	}})
	return c
}

// TestStreamsThatJoinHaveRoutesOfTheirOwn by the templates of wildcards; one that is over keeps them for what is still
// on disk.
func TestStreamsThatJoinHaveRoutesOfTheirOwn(t *testing.T) {
	gears := change.Stream{Resource: change.Resource{Group: "example.com", Version: "v1", Name: "gears", Kind: "Gear"}}
	c := crossroads()
	start := c.Chosen.Load()
	topics, err := kafkaRoutes(&config.Sink{Kafka: &config.Kafka{Topic: "all", Topics: map[string]string{"*.example.com": "own.{resource}"}}}, c)
	must(t, err)
	subjects, taken, err := natsRoutes(&config.NATS{Subject: "k8s.{resource}", Subjects: map[string]string{"*.example.com": "own.{resource}"}}, c)
	if err != nil || !slices.Equal(taken, []string{"k8s.*", "own.*"}) {
		t.Errorf("the stream is to take %q (%v), and takes what joins later", taken, err)
	}
	rec := &change.Record{Stream: &c.Streams()[0].Stream, Op: change.Added}
	if got := string(topics.Append(nil, rec)); got != "all" {
		t.Errorf("before it joins, pods go to %s", got)
	}
	joined := &selection.Choice{Streams: append(slices.Clone(start.Streams), selection.Selected{Stream: gears, Names: []string{"*.example.com"}})}
	for step, chosen := range map[string]*selection.Choice{"joined": joined, "over": start} {
		c.Chosen.Store(chosen)
		for stream, want := range map[*change.Stream][2]string{&gears: {"own.gears.example.com", "own.gears"}, &start.Streams[0].Stream: {"all", "k8s.pods"}} {
			rec := &change.Record{Stream: stream, Op: change.Added}
			if topic, subject := string(topics.Append(nil, rec)), string(subjects.Append(nil, rec)); topic != want[0] || subject != want[1] {
				t.Errorf("%s: %s goes to topic %s and subject %s, want %s and %s", step, stream, topic, subject, want[0], want[1])
			}
		}
	}
}

// goes says where a record of each stream goes whose object has no labels.
func goes(c *cluster.Cluster, routes encode.Routes) (told string) {
	for _, of := range c.Streams() {
		rec := &change.Record{Stream: &of.Stream, Op: change.Deleted, Key: change.Key{Namespace: "shop", Name: "web"}}
		told += "\n   " + of.Stream.String() + ": " + string(routes.Append(nil, rec))
	}
	return told
}

// served are the resources of an API server, by their names.
type served map[string][]change.Resource

func (s served) Resolve(name string) ([]change.Resource, error) { return s[name], nil }

func (served) Names() []string { return nil }

func (served) LeftOut(string) []source.LeftOut { return nil }

// TestI4WhereRecordsGo, or why not: objects of one table have keys of their own, which nothing that can change chooses;
// frames have topics that are known before the first; who makes objects makes no number of topics (I6); no object
// pushes another one out of a stream.
func TestI4WhereRecordsGo(t *testing.T) {
	pods, gears := core("pods", "Pod").Resource, core("gears", "Gear").Resource
	services, nodes, others := core("services", "Service").Resource, core("nodes", "Node").Resource, gears
	nodes.ClusterScoped, others.Group = true, "example.com"
	all := served{"pods": {pods}, "po": {pods}, "services": {services}, "nodes": {nodes}, "gears": {gears}, "gears.example.com": {others}, "*": {pods, services, nodes}}
	script.Run(t, "testdata/routes.txt", func(text string) string {
		text, asked, _ := strings.Cut(text, "# ")
		cfg, err := config.Parse("c.yaml", []byte("cluster: c\n"+text), os.LookupEnv)
		must(t, err)
		chosen, errs := selection.Choose(all, cfg.Resources)
		must(t, errors.Join(errs...))
		s, c := &cfg.Sinks[0], &cluster.Cluster{Name: "c"}
		c.Chosen.Store(chosen)
		if s.NATS != nil {
			routes, subjects, err := natsRoutes(s.NATS, c)
			must(t, err)
			told := strings.TrimSuffix(fmt.Sprintf("%q, %s", subjects, crowded(s, c, routes)), ", ")
			if asked == "records\n" {
				told += goes(c, routes)
			}
			return told
		}
		if _, err := Build(s, c, Outlet{Told: Nop{}}); err != nil && asked == "" {
			return fmt.Sprintf("%v (a mistake: %t)", err, usage.Is(err))
		}
		routes, err := kafkaRoutes(s, c)
		must(t, err)
		of := &table{sink: s, cluster: c, routes: routes}
		o := kafkaOptions(of, Nop{})
		told := fmt.Sprintf("%q", o.Topics)
		for _, topic := range o.Topics {
			if o.Ordered != nil && o.Ordered(topic) {
				told += ", one partition of " + topic
			}
		}
		if o.LabelTopics > 0 {
			told += fmt.Sprintf(", and %d at most that objects choose", o.LabelTopics)
		}
		if asked == "records\n" {
			_, found := topicsOf(c, s, routes)
			return told + fmt.Sprintf(", of which a wildcard found %q", found) + goes(c, routes)
		}
		for topic := range strings.FieldsSeq(asked) {
			told += "\n   " + topic + ": " + of.misfit(topic)
		}
		return told
	})
}
