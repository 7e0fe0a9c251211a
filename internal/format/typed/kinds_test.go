package typed_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/format/openapi"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/test/objects"
)

// documents are those of an API server, by group and version.
func documents(t testing.TB) map[string]*openapi.Document {
	t.Helper()
	texts, err := objects.Documents()
	if err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal(object, &named); err != nil {
		t.Fatal(err)
	}
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

// TestEveryBuiltInKindIsRestored has an object of each, with something in each field.
func TestEveryBuiltInKindIsRestored(t *testing.T) {
	all := documents(t)
	kinds, err := objects.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	tried, size, json := 0, 0, 0
	for _, object := range kinds {
		of := typeOf(t, all, object)
		if of == nil {
			continue
		}
		tried++
		size, json = size+len(newCodec(t, of).restore(object)), json+len(object)
	}
	t.Logf("%d kinds of %d, %d bytes, of JSON %d", tried, len(kinds), size, json)
	if tried < 90 || size > json*2/3 {
		t.Errorf("%d kinds became %d bytes, of JSON %d", tried, size, json)
	}
}
