package encode

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/sink"
)

func topic(t *testing.T, text, cluster string) *Topic {
	t.Helper()
	topic, err := NewTopic(text, cluster)
	must(t, err)
	return topic
}

func TestTopicsHaveKubectlsNames(t *testing.T) {
	web := change.Key{Namespace: "shop", Name: "web"}
	for _, c := range []struct{ template, cluster, want string }{
		{"k8s.{cluster}.{resource}", "prod-eu1", "k8s.prod-eu1.deployments.apps"},
		{"k8s.{cluster}.{resource}", "arn:aws:eks/one", "k8s.arn_aws_eks_one.deployments.apps"},
		{"{namespace}-{kind}.{version}_{group}", "c", "shop-Deployment.v1_apps"},
		{"all", "c", "all"},
	} {
		if got := topic(t, c.template, c.cluster).Of(&change.Record{Stream: deployments(), Key: web}); got != c.want {
			t.Errorf("topic of %s is %q, want %q", c.template, got, c.want)
		}
	}
}

func TestFixedTopicsAreKnownBeforeTheFirstRecord(t *testing.T) {
	shop := *deployments()
	shop.Namespace = "shop"
	for _, c := range []struct {
		template string
		stream   *change.Stream
		want     string
		fixed    bool
	}{
		{"k.{resource}", deployments(), "k.deployments.apps", true},
		{"k.{namespace}", deployments(), "", false},
		{"k.{namespace}", &shop, "k.shop", true},
		{"k.{namespace}", clusterRoles(), "k.-", true},
		{"k.{name}", &shop, "", false},
	} {
		if got, fixed := topic(t, c.template, "c").Fixed(c.stream); got != c.want || fixed != c.fixed {
			t.Errorf("topic of %s for %s is %q, %t, want %q, %t", c.template, c.stream, got, fixed, c.want, c.fixed)
		}
	}
}

// TestPatternsMatchTheTopicsOfRecords, and not those of other streams.
func TestPatternsMatchTheTopicsOfRecords(t *testing.T) {
	for template, want := range map[string]string{
		"k.{cluster}.{resource}.{label:team}": `k\.c\.deployments\.apps\.[-._a-zA-Z0-9]+`,
		"k.{namespace}-{kind}":                `k\.[-._a-zA-Z0-9]+-Deployment`,
		"k.{group}.{version}":                 `k\.apps\.v1`,
	} {
		made := topic(t, template, "c")
		if got := made.Pattern(deployments()); got != want {
			t.Errorf("the pattern of %s is %s, want %s", template, got, want)
		}
		for _, rec := range records() {
			matches := regexp.MustCompile("^(" + want + ")$").MatchString(made.Of(rec))
			if of := rec.Stream.Resource.Name == "deployments"; matches != of {
				t.Errorf("%s matches the topic %s of %s: %t", template, made.Of(rec), rec.Stream, matches)
			}
		}
	}
}

func TestI3MessagesOfAnObjectHaveOneKey(t *testing.T) {
	encoder := NewEncoder(Options{Cluster: "c", ClusterUID: clusterUID, Destination: topic(t, "k.{resource}", "c"), Transport: Kafka, Tombstones: true})
	for name, want := range map[string]string{
		"updated": "shop/web", "deleted": "shop/web", "replaced": "shop/web", "gone": "shop/web",
		"odd":   "system:\"té\" \\a\n",
		"begin": "/snapshot.begin", "end": "/snapshot.end", "gap": "/gap",
	} {
		for _, msg := range encoded(encoder, nil, records()[name]) {
			if string(msg.Key) != want || msg.Destination == "" {
				t.Errorf("%s: key is %q in %q, want %q", name, msg.Key, msg.Destination, want)
			}
		}
	}
	shop := *records()["gap"].Stream
	shop.Namespace = "shop"
	if got := string(appendKey(nil, &change.Record{Stream: &shop, Op: change.Gap})); got != "shop//gap" {
		t.Errorf("key of a namespace's gap is %q", got)
	}
}

// TestI4TheGapOfAnObjectTakesNoKeyAway: in a compacted topic the object's last state stays, and without a value the gap
// would even be its tombstone. It is in the object's partition all the same.
func TestI4TheGapOfAnObjectTakesNoKeyAway(t *testing.T) {
	key, err := NewText("{resource}:{namespace}/{name}", "c")
	must(t, err)
	schemas := schemasStub{Schema{Key: 7, Value: 8, Type: &typed.Type{}}}
	gap, row := "/gap/deployments.apps/shop/web", `{"namespace":null,"name":"/gap/deployments.apps/shop/web"}`
	for name, test := range map[string]struct {
		options Options
		key     string
	}{
		"cloudevents": {Options{}, gap},
		"object":      {Options{Format: FormatObject}, gap},
		"template":    {Options{Key: key}, gap},
		"debezium":    {Options{Format: FormatDebezium}, row},
		"avro":        {Options{Format: FormatDebezium, Schemas: schemas}, "\x00\x00\x00\x00\x07\x00\x3c" + gap},
	} {
		test.options.Transport, test.options.ClusterUID, test.options.Cluster = Kafka, clusterUID, "c"
		encoder := NewEncoder(test.options)
		object := sink.Message{}
		if name != "avro" { // its value needs a schema that is true
			object = encoded(encoder, nil, records()["updated"])[0]
		}
		note := encoded(encoder, nil, records()["policy"])[0]
		if string(note.Key) != test.key || object.Key != nil && string(note.Partition) != string(object.Key) || note.Partition == nil || object.Partition != nil {
			t.Errorf("%s: the gap has key %q in the partition of %q, that of the object is %q", name, note.Key, note.Partition, object.Key)
		}
	}
}

// TestFramesGoAsideInOneForm: whatever the format, they are JSON in one partition of a topic where no object goes, and
// objects are as they are without that.
func TestFramesGoAsideInOneForm(t *testing.T) {
	template := topic(t, "k8s.{resource}.{namespace}", "c")
	schemas := schemasStub{Schema{Key: 7, Value: 8, Type: &typed.Type{}}}
	for name, options := range map[string]Options{
		"cloudevents": {}, "binary": {Format: FormatCloudEventsBinary}, "object": {Format: FormatObject},
		"debezium": {Format: FormatDebezium}, "avro": {Format: FormatDebezium, Schemas: schemas},
	} {
		options.Transport, options.ClusterUID, options.Cluster, options.Destination = Kafka, clusterUID, "c", template
		inline := NewEncoder(options)
		options.Destination, options.FramesAside = template.FramesAside(), true
		aside := NewEncoder(options)
		for _, frame := range []string{"gap", "begin", "policy"} {
			rec := records()[frame]
			got, want := encoded(aside, nil, rec)[0], string(payload(rec))
			if string(got.Value) != want || !json.Valid(got.Value) || string(got.Partition) != "frames" || got.Key[0] != '/' {
				t.Errorf("%s: %s has key %q in the partition of %q, and the value %s, want %s", name, frame, got.Key, got.Partition, got.Value, want)
			}
			if got.Destination != template.FramesAside().OfFrames(rec.Stream) || got.Destination != "k8s.deployments.apps.-_frames" {
				t.Errorf("%s: %s goes to %s", name, frame, got.Destination)
			}
		}
		if name == "avro" { // the value of an object needs a schema that is true
			continue
		}
		rec := records()["updated"]
		if got, want := encoded(aside, nil, rec)[0], encoded(inline, nil, rec)[0]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the object's message is\n%v, without that\n%v", name, got, want)
		}
	}
}

// TestADeleteWithoutItsLastStateGoesWhereTheObjectWent, and says what it lacks.
func TestADeleteWithoutItsLastStateGoesWhereTheObjectWent(t *testing.T) {
	for _, format := range []string{FormatCloudEvents, FormatCloudEventsBinary, FormatDebezium, FormatObject} {
		encoder := NewEncoder(Options{Cluster: "c", ClusterUID: clusterUID, Transport: Kafka, Format: format, Destination: topic(t, "k.{label:team}", "c")})
		whole := *records()["deleted"]
		whole.Object, whole.Before = []byte(`{"metadata":{"labels":{"team":"red"}},"data":"large"}`), []byte(`{"data":"large"}`)
		bare := whole
		bare.Remarks = &change.Remarks{BeforeOmitted: true}
		got := encoded(encoder, nil, &bare)[0]
		if got.Destination != "k.red" || strings.Contains(string(got.Value), "large") || !slices.Contains(got.Headers, sink.Header{Name: sink.HeaderMark + "beforeomitted", Value: "true"}) {
			t.Errorf("%s: in %s is %s with %v", format, got.Destination, got.Value, got.Headers)
		}
	}
}

type schemasStub struct{ schema Schema }

func (s schemasStub) Of(*change.Resource) *Schema { return &s.schema }

// TestAKeyOfATableHasNoNull: a primary key of a database can have none.
func TestAKeyOfATableHasNoNull(t *testing.T) {
	schema := avro.MustParse(string(KeySchema(&change.Resource{Kind: "Node"})))
	for columns, want := range map[bool]any{false: nil, true: ""} {
		_, body, err := SchemaID(appendTypedKey(nil, &Schema{Key: 7, Columns: columns}, &change.Record{Key: change.Key{Name: "node"}}))
		must(t, err)
		var got map[string]any
		if rest, err := schema.Decode(body, &got); err != nil || len(rest) > 0 || got["name"] != "node" || got["namespace"] != want {
			t.Errorf("with columns: %v, the key is %v, %v, want namespace %v", columns, got, err, want)
		}
	}
}
