package typed_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/format/openapi"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/test/objects"
)

// documents are those of an API server, by group and version.
func documents(t testing.TB) map[string]*openapi.Document {
	t.Helper()
	texts, err := objects.Documents()
	must(t, err)
	all := map[string]*openapi.Document{}
	for version, text := range texts {
		if all[version], err = openapi.Read(bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// typeOf is the type of an object's kind, nil where no document has it.
func typeOf(t testing.TB, all map[string]*openapi.Document, object []byte) *typed.Type {
	t.Helper()
	var named struct{ APIVersion, Kind string }
	must(t, json.Unmarshal(object, &named))
	document := all[named.APIVersion]
	if document == nil {
		return nil
	}
	group, version, grouped := strings.Cut(named.APIVersion, "/")
	if !grouped {
		group, version = "", named.APIVersion
	}
	return document.Type(group, version, named.Kind, openapi.Options{})
}

// ruled is an object of a built-in kind, its type, and what rules make of both.
type ruled struct {
	object, shaped []byte
	of, narrowed   *typed.Type
	rules          transform.Rules
}

// eachKind calls do with an object of each kind that the documents have, changed first, and with rules at random.
func eachKind(t *testing.T, seed uint64, changed func(object []byte) []byte, do func(r *ruled)) {
	t.Helper()
	all := documents(t)
	kinds, err := objects.Kinds()
	must(t, err)
	for i, object := range kinds {
		of := typeOf(t, all, object)
		if of == nil {
			continue
		}
		w := world{rand.New(rand.NewPCG(uint64(i), seed))}
		r := &ruled{object: changed(object), of: of}
		r.rules = transform.Rules{Redact: []string{somePath(w), somePath(w)}, Drop: []string{somePath(w)}}
		if w.chance(30) {
			r.rules.Keep = []string{somePath(w), somePath(w)}
		}
		if w.chance(30) {
			r.rules.Redact = []string{".*"}
		}
		r.shaped, r.narrowed = byRules(t, of, r.rules, r.object)
		do(r)
	}
}

// byRules is what the rules make of an object, and of its type.
func byRules(t *testing.T, of *typed.Type, rules transform.Rules, object []byte) (shaped []byte, narrowed *typed.Type) {
	t.Helper()
	made, err := transform.New(rules, transform.Key{Secret: []byte("key")})
	must(t, err)
	if shaped, err = made.Apply(nil, object, transform.Owner{}); err != nil {
		t.Fatal(err)
	}
	if narrowed, err = of.Narrow(rules); err != nil {
		t.Fatal(err)
	}
	return shaped, narrowed
}

func asItIs(object []byte) []byte { return object }

// TestEveryBuiltInKindIsRestored has an object of each, with something in each field.
func TestEveryBuiltInKindIsRestored(t *testing.T) {
	tried, size, json := 0, 0, 0
	eachKind(t, 8, asItIs, func(r *ruled) {
		tried++
		size, json = size+len(newCodec(t, r.of).restore(r.object)), json+len(r.object)
	})
	t.Logf("%d kinds, %d bytes, of JSON %d", tried, size, json)
	if tried < 90 || size > json*2/3 {
		t.Errorf("%d kinds became %d bytes, of JSON %d", tried, size, json)
	}
}

// TestColumnsHoldWhatIsNested: objects are restored from columns that a database can have, too.
func TestColumnsHoldWhatIsNested(t *testing.T) {
	eachKind(t, 2, asItIs, func(r *ruled) {
		columns := r.of.Columns()
		if !columns.IsFlat() || len(columns.Fields) != len(r.of.Fields) {
			t.Errorf("%s has %d columns, of %d fields", r.of.Name, len(columns.Fields), len(r.of.Fields))
		}
		newCodec(t, columns).restore(r.object)
	})
}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
