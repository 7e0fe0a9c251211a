package encode

import (
	"errors"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/validate"
)

// validators are those of the schemas for others, and of the closed ones for this version.
func validators(t *testing.T) []*validate.Validator {
	t.Helper()
	open, err1 := validate.New()
	closed, err2 := validate.NewClosed()
	must(t, errors.Join(err1, err2))
	return []*validate.Validator{open, closed}
}

func consumed(o outlet, msg sink.Message) validate.Message {
	m := validate.Message{Format: o.format, NATS: o.kind == NATS, Op: msg.Op, Headers: map[string]string{}, Key: msg.Key, Value: msg.Value}
	for _, h := range msg.Headers {
		m.Headers[h.Name] = h.Value
	}
	return m
}

// TestEveryGoldenIsValid takes the records that the goldens are made of; that these are what the files hold, the tests
// of the goldens say.
func TestEveryGoldenIsValid(t *testing.T) {
	check := validators(t)
	all := records()
	for name, in := range inputs() {
		all["objects/"+name] = in.record(t, name)
	}
	for name, rec := range all {
		for _, o := range outlets() {
			for _, msg := range encoded(formatEncoder(o.format, o.kind), nil, rec) {
				for _, v := range check {
					if err := v.Message(consumed(o, msg)); err != nil {
						t.Errorf("%s, %s on %s: %v", name, o.format, o.transport, err)
					}
				}
			}
		}
	}
}

// wrong is a change of a good message after which it is not valid any more.
type wrong struct {
	record, format string
	kind           Transport
	old, new       string
	closed         bool // only the closed schemas find it
}

func TestWrongMessagesAreNotValid(t *testing.T) {
	check := validators(t)
	for _, c := range []wrong{
		{"updated", FormatCloudEvents, File, `"specversion":"1.0"`, `"specversion":"0.3"`, false},
		{"updated", FormatCloudEvents, File, `"type":"dev.kubecdc.updated"`, `"type":"dev.kubecdc.modified"`, false},
		{"updated", FormatCloudEvents, File, `"name":"web","uid"`, `"uid"`, false},
		{"updated", FormatCloudEvents, File, `.123456Z`, `.123Z`, false},
		{"updated", FormatCloudEvents, File, `-21T02`, `-31T02`, false}, // no such day
		{"updated", FormatCloudEvents, File, `"resourceversion":"123456"`, `"resourceversion":123456`, false},
		{"updated", FormatCloudEvents, File, `"data":{`, `"Data":{`, false},
		{"updated", FormatCloudEvents, File, `"kind":"Deployment",`, ``, false},
		{"updated", FormatCloudEvents, File, `"cluster":`, `"extra":"1","cluster":`, true},
		{"patched", FormatCloudEvents, File, `"base":"123450",`, ``, false},
		{"patched", FormatCloudEvents, File, `json-patch+json`, `json`, false},
		{"patched", FormatCloudEvents, File, `dev.kubecdc.updated`, `dev.kubecdc.added`, false},
		{"patched", FormatCloudEvents, File, `"op":"remove"`, `"op":"copy"`, false},
		{"patched", FormatCloudEvents, File, `,"value":"\u003c"`, ``, false},
		{"patched", FormatCloudEvents, File, `"path":"/spec/x"`, `"path":"/spec/~"`, false},
		{"patched", FormatCloudEvents, File, `"base":`, `"before":"{}","base":`, false},
		{"patched", FormatCloudEventsBinary, Kafka, `"path":"/spec/x"`, `"path":"spec"`, false},
		{"gone", FormatCloudEvents, File, `"finalstateunknown":true,`, ``, false},
		{"updated", FormatCloudEvents, File, `"cluster":`, `"finalstateunknown":true,"cluster":`, false},
		{"begin", FormatCloudEvents, File, `"reason":"gone","data"`, `"data"`, false},
		{"end", FormatCloudEvents, File, `"synced":0`, `"synced":"0"`, false},
		{"gap", FormatCloudEvents, File, `"lastDelivered":"850",`, ``, false},
		{"gap", FormatCloudEvents, File, `{"reason":"gone"`, `{"reason":"requested"`, false},
		{"resolved", FormatCloudEvents, File, `"data":{"resourceVersion":"900",`, `"data":{`, false},
		{"resolved-digest", FormatCloudEvents, File, `"objects":2`, `"objects":-1`, false},
		{"resolved-comparing", FormatObject, Kafka, `"comparing":"gone"`, `"comparing":"full"`, false},
		{"end", FormatObject, Kafka, `"deleted":2,`, ``, false},
		{"end", FormatObject, Kafka, `"deleted":2,`, `"deleted":2,"removed":2,`, true},
		{"updated", FormatObject, Kafka, `"name":"web",`, ``, false},
		{"updated", FormatDebezium, Kafka, `"before":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","uid":"u-1"}}`, `"before":null`, false},
		{"deleted", FormatDebezium, Kafka, `"after":null`, `"after":{}`, false},
		{"replaced", FormatDebezium, Kafka, `"op":"r"`, `"op":"R"`, false},
		{"replaced", FormatDebezium, Kafka, `"snapshot":"true"`, `"snapshot":true`, false},
		{"gap", FormatDebezium, File, `"message":`, `"note":`, false},
		{"updated", FormatDebezium, Kafka, `"connector":`, `"lsn":"x","connector":`, true},
	} {
		o := outlet{format: c.format, kind: c.kind}
		msg := encoded(formatEncoder(c.format, c.kind), nil, records()[c.record])[0]
		changed := strings.Replace(string(msg.Value), c.old, c.new, 1)
		if changed == string(msg.Value) {
			t.Errorf("%s, %s: no %s in %s", c.record, c.format, c.old, msg.Value)
		}
		msg.Value = []byte(changed)
		for i, v := range check {
			if err := v.Message(consumed(o, msg)); (err == nil) != (c.closed && i == 0) {
				t.Errorf("%s, %s, %s instead of %s: validator %d says %v", c.record, c.format, c.new, c.old, i, err)
			}
		}
	}
}

func TestWrongHeadersAndKeysAreNotValid(t *testing.T) {
	v := validators(t)[1]
	for _, kind := range []Transport{Kafka, NATS} {
		o := outlet{format: FormatCloudEventsBinary, kind: kind}
		good := encoded(formatEncoder(o.format, kind), nil, records()["updated"])[0]
		for i := range good.Headers {
			if strings.Contains(good.Headers[i].Name, "content") {
				continue // optional, and the value says what it is
			}
			m := consumed(o, good)
			switch delete(m.Headers, good.Headers[i].Name); good.Headers[i].Name[len("ce_"):] {
			case "namespace", "uid":
				continue // not every object has them
			}
			if v.Message(m) == nil {
				t.Errorf("without header %s the message is valid", good.Headers[i].Name)
			}
		}
	}
	o := outlet{format: FormatDebezium, kind: Kafka}
	for _, key := range []string{`{"name":"web"}`, `{"namespace":"","name":"web"}`, `{"namespace":"shop","name":"web","x":1}`} {
		m := consumed(o, encoded(formatEncoder(o.format, o.kind), nil, records()["updated"])[0])
		if m.Key = []byte(key); v.Message(m) == nil {
			t.Errorf("key %s is valid", key)
		}
	}
	m := consumed(o, encoded(formatEncoder(o.format, o.kind), nil, records()["updated"])[0])
	if m.Value = nil; v.Message(m) == nil {
		t.Error("an update without a value is valid")
	}
}
