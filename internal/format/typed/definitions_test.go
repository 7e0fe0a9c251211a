package typed_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/kubecdc/kubecdc/test/objects"
)

// TestObjectsOfWellKnownCRDsAreRestored has objects at random of the fields that the projects publish.
func TestObjectsOfWellKnownCRDsAreRestored(t *testing.T) {
	all, err := objects.Definitions()
	must(t, err)
	for _, d := range all {
		for version, schema := range d.Versions {
			t.Run(d.Kind+" "+version, func(t *testing.T) {
				var thing definition
				must(t, json.Unmarshal(schema, &thing))
				thing["x-kubernetes-group-version-kind"] = kindOf(nil)["x-kubernetes-group-version-kind"]
				of := typeIn(t, definition{"Thing": thing})
				c := newCodec(t, of)
				compiled(t, of)
				w := writer{world: world{rand.New(rand.NewPCG(1, 23))}}
				for range 5 {
					w.text.Reset()
					w.object(thing["properties"].(definition), nil, 0)
					c.restore([]byte(w.text.String()))
				}
				t.Logf("%s has %d bytes of schema", d.Kind, len(of.Avro()))
			})
		}
	}
	if len(all) != 3 {
		t.Errorf("there are %d definitions", len(all))
	}
}
