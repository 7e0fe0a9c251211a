package transform

import (
	"slices"
	"testing"
)

func TestStepsArePartsOfThePath(t *testing.T) {
	for path, want := range map[string][]Step{
		".spec.replicas":                      {{Field: "spec"}, {Field: "replicas"}},
		"{$.spec.containers[*].env[0].value}": {{Field: "spec"}, {Field: "containers"}, {Any: true}, {Field: "env"}, {}, {Field: "value"}},
		".metadata.annotations['a.b/c']":      {{Field: "metadata"}, {Field: "annotations"}, {Field: "a.b/c"}},
		"data.*":                              {{Field: "data"}, {Any: true}},
	} {
		got, err := Steps(path)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", path, got, err, want)
		}
	}
	if steps, err := Steps(".spec..x"); err == nil {
		t.Errorf("got %+v of a path that is none", steps)
	}
}
