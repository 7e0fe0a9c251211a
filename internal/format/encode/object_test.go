package encode

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// input is a frame of a watch, testdata/objects/NAME.in, and what the exporter makes of it on its way to the encoder.
type input struct {
	stream *change.Stream
	rules  transform.Rules
	op     change.Op // of a record that a snapshot found instead of the watch; 0 is the watch's
	from   string    // the file, where it is another input's
}

func stream(group, version, name, kind string) *change.Stream {
	return &change.Stream{Resource: change.Resource{Group: group, Version: version, Name: name, Kind: kind}}
}

func clusterWide(s *change.Stream) *change.Stream {
	s.Resource.ClusterScoped = true
	return s
}

// inputs are what real clusters hold, by the names of their files.
func inputs() map[string]input {
	maps, widgets := stream("", "v1", "configmaps", "ConfigMap"), stream("example.com", "v1beta1", "widgets", "Widget")
	return map[string]input{
		"create":                    {stream: maps},
		"update":                    {stream: maps},
		"delete":                    {stream: maps},
		"read":                      {stream: maps, op: change.Replaced, from: "update"},
		"sync":                      {stream: maps, op: change.Sync, from: "update"},
		"cluster-scoped":            {stream: clusterWide(stream("", "v1", "namespaces", "Namespace"))},
		"custom-resource":           {stream: widgets},
		"name-with-dots-and-colons": {stream: clusterRoles()},
		"name-long":                 {stream: maps},
		"secret":                    {stream: stream("", "v1", "secrets", "Secret"), rules: transform.Secrets()},
		"event":                     {stream: stream("", "v1", "events", "Event")},
		"keys-that-look-alike":      {stream: maps},
		"nested-deeply":             {stream: widgets},
		"unicode":                   {stream: maps},
		"numbers":                   {stream: widgets},
		"empty":                     {stream: clusterWide(stream("example.com", "v1beta1", "widgets", "Widget"))},
	}
}

// record takes the frame the way that source and shape take it.
func (in input) record(t *testing.T, name string) *change.Record {
	t.Helper()
	if in.from != "" {
		name = in.from
	}
	text, err := os.ReadFile(filepath.Join("testdata", "objects", name+".in"))
	must(t, err)
	f, err := frame.NewReader(bytes.NewReader(text), frame.Options{KeepLastApplied: !in.rules.Empty()}).Next()
	must(t, err)
	op := map[frame.Type]change.Op{frame.Added: change.Added, frame.Modified: change.Updated, frame.Deleted: change.Deleted}[f.Type]
	rec := &change.Record{
		Stream: in.stream, Op: op, Key: change.Key{Namespace: f.Object.Namespace, Name: f.Object.Name}, UID: f.Object.UID,
		ResourceVersion: f.Object.ResourceVersion, Object: f.Object.JSON, Received: received(),
	}
	if in.op != 0 {
		rec.Op, rec.Snapshot = in.op, &change.Snapshot{ID: "7005.1732155194123", Reason: change.Requested, ResourceVersion: "7005"}
	}
	s, err := shape.New(shape.Options{Rules: in.rules, Key: transform.Key{Secret: []byte("0123456789abcdef")}, Failed: func(_ *change.Record, err error) { t.Error(err) }})
	must(t, err)
	if s != nil {
		s.Apply(rec)
	}
	return rec
}

// outlet is a format on a transport.
type outlet struct {
	format, transport string
	kind              Transport
}

// outlets are all that a file can have: formats with headers have no line of their own.
func outlets() []outlet {
	var all []outlet
	for _, format := range []string{FormatCloudEvents, FormatCloudEventsBinary, FormatDebezium, FormatObject} {
		if format == FormatCloudEvents || format == FormatDebezium {
			all = append(all, outlet{format, "file", File})
		}
		all = append(all, outlet{format, "kafka", Kafka}, outlet{format, "nats", NATS})
	}
	return all
}

// TestObjectGoldens is the table of objects and formats: a golden file an object, and in it a part for each outlet.
func TestObjectGoldens(t *testing.T) {
	for name, in := range inputs() {
		t.Run(name, func(t *testing.T) {
			var got strings.Builder
			rec := in.record(t, name)
			for _, o := range outlets() {
				fmt.Fprintf(&got, "=== %s on %s\n%s", o.format, o.transport, text(encoded(formatEncoder(o.format, o.kind), nil, rec)))
			}
			same(t, filepath.Join("testdata", "objects", name+".golden"), got.String())
		})
	}
}

func TestEveryFileOfObjectsIsInTheTable(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "objects", "*"))
	must(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".golden"), ".in")
		if _, known := inputs()[name]; !known {
			t.Errorf("%s is nobody's", file)
		}
	}
}

// What the frame has between the braces of its object leaves as it came, but for managedFields and last-applied.
func TestObjectsLeaveDigitForDigit(t *testing.T) {
	for name, parts := range map[string][]string{
		"numbers": {
			`"above":9007199254740993,"below":-9223372036854775808,"unsigned":18446744073709551615,"large":123456789012345678901234567890,`,
			`"fraction":0.1000000000000000055511151231257827,"zeros":1.10,"exponent":1E+400,"small":1e-400,"minus":-0`,
		},
		"unicode":              {`\u003cb\u003e \u0026 \u2028\u2029 \t\n\r\b\f\/ \u0000\u007f \u00e9 \ud83d\ude00"`, "\u200f\u2028 \u00ff", `"\ud800 \udc00\ud800"`},
		"keys-that-look-alike": {`"managedFields":"[{\"manager\":\"kept\"}]"`, `"annotations":{"managedFields":"kept"`, `"` + lastApplied + `":"kept"`},
		"nested-deeply":        {strings.Repeat(`{"x":`, 100) + "[[[1]]]" + strings.Repeat("}", 100)},
	} {
		rec := inputs()[name].record(t, name)
		for _, o := range outlets() {
			value := string(encoded(formatEncoder(o.format, o.kind), nil, rec)[0].Value)
			for _, part := range parts {
				if !strings.Contains(value, part) {
					t.Errorf("%s, %s on %s: no %s in %s", name, o.format, o.transport, part, value)
				}
			}
		}
	}
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func TestI9NoGoldenHasAPlantedValue(t *testing.T) {
	in, err := os.ReadFile(filepath.Join("testdata", "objects", "secret.in"))
	must(t, err)
	golden, err := os.ReadFile(filepath.Join("testdata", "objects", "secret.golden"))
	must(t, err)
	for _, planted := range []string{"s3cr3t-planted", "czNjcjN0LXBsYW50ZWQ=", lastApplied} {
		if !bytes.Contains(in, []byte(planted)) || bytes.Contains(golden, []byte(planted)) {
			t.Errorf("%s is not in the object, or is in the golden", planted)
		}
	}
}
