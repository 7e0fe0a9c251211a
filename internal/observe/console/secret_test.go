package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/sink/deadletter"
)

// The object of a Secret: hidden-N is a value that nobody may see, and there is a keyed hash.
const (
	secretHash = "hmac-sha256:0123456789abcdef0123456789abcdef"
	secretBody = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"login","annotations":{"a":"hidden-N","b":"` + secretHash +
		`"}},"data":{"password":"hidden-N","metadata":"hidden-N","hashed":"` + secretHash + `"},"stringData":{"x":"hidden-N"},"type":"Opaque"}`
)

func secret(op change.Op, n string) *change.Record {
	body := func(n string) []byte { return []byte(strings.ReplaceAll(secretBody, "hidden-N", "hidden-"+n)) }
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "secrets", Kind: "Secret"}},
		Op:     op, Key: change.Key{Namespace: "shop", Name: "login"}, UID: "u", ResourceVersion: n, Object: body(n), Before: body("0"), Received: quarterPast(),
	}
}

// secretForms are all that a log can have.
func secretForms() []encode.Options {
	return []encode.Options{
		{Format: encode.FormatCloudEvents}, {Format: encode.FormatCloudEventsBinary, Transport: encode.NATS},
		{Format: encode.FormatCloudEventsBinary, Transport: encode.Kafka}, {Format: encode.FormatDebezium}, {Format: encode.FormatDebezium, Transport: encode.Kafka},
		{Format: encode.FormatObject, Transport: encode.NATS}, {Format: encode.FormatObject, Transport: encode.Kafka},
	}
}

// TestI9SecretsLookTheSameInEveryCommand: exporter tail and dev show where a value changed and not what it is, and
// exporter deadletter show has no value, whatever the configuration lets through.
func TestI9SecretsLookTheSameInEveryCommand(t *testing.T) {
	for _, o := range secretForms() {
		for _, style := range []Style{{}, {JSON: true}, {Brief: true}} {
			messages := stored(t, o, secret(change.Added, "1"), secret(change.Updated, "2"))
			_, lines := shown(t, style, messages...)
			text := strings.Join(lines, "\n")
			if strings.Contains(text, "hidden-") || !strings.Contains(text, redacted) || !strings.Contains(text, "data.metadata") {
				t.Errorf("%+v in style %+v shows\n%s", o, style, text)
			}
		}
		text := letterOf(t, o, secret(change.Updated, "2"))
		if strings.Contains(text, "hidden-") || !strings.Contains(text, redacted) || !strings.Contains(text, secretHash) || !strings.Contains(text, "Opaque") {
			t.Errorf("a dead letter of %+v is shown as\n%s", o, text)
		}
	}
}

// letterOf is what exporter deadletter show says of the record.
func letterOf(t *testing.T, o encode.Options, rec *change.Record) string {
	t.Helper()
	m := stored(t, o, rec)[0]
	r := rec.Stream.Resource
	letter := &deadletter.Letter{Group: r.Group, Version: r.Version, Resource: r.Name, Kind: r.Kind, Headers: m.Headers, Value: m.Value, Object: rec.Object}
	var out bytes.Buffer
	must(t, PrintLetter(letter, &out))
	if !json.Valid(out.Bytes()) {
		t.Errorf("%s is no JSON", out.Bytes())
	}
	return out.String()
}

// TestOtherLettersAreShownWhole, also of a resource that another group calls secrets.
func TestOtherLettersAreShownWhole(t *testing.T) {
	rec := secret(change.Updated, "2")
	rec.Stream.Resource.Group = "vault.example.com"
	if text := letterOf(t, encode.Options{}, rec); strings.Count(text, "hidden-2") != 4 {
		t.Errorf("shown as %s", text)
	}
}

func TestI9AWholeSecretThatComesIsHidden(t *testing.T) {
	before, after := parseObject([]byte(`{}`)), parseObject([]byte(secretBody))
	if text := fmt.Sprint(shorten(compareObjects("secrets", before, after)), string(rawText(hideSecret(nil, after)))); strings.Contains(text, "hidden-") {
		t.Errorf("shown as %s", text)
	}
}

func TestI9AValueThatIsNoHashIsHidden(t *testing.T) {
	for text, want := range map[string]bool{
		secretHash: true, "hmac-sha256:": false, "hmac-sha256:0123456789abcdef0123456789abcdeg": false, "x" + secretHash: false, secretHash + "0": false,
	} {
		if shownAsIs := hideValues(text) == text; shownAsIs != want {
			t.Errorf("%q is shown: %v", text, shownAsIs)
		}
	}
}
