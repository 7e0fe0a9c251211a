package objects

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
)

// definitions are CRDs as their projects publish them, without descriptions and rules of validation: Certificate of
// cert-manager 1.21.2, Prometheus of prometheus-operator 0.85.0, and HTTPRoute of gateway-api 1.4.0.
//
//go:embed testdata/crds.json.gz
var definitions []byte

// Definition is a CRD.
type Definition struct {
	Group, Kind, Plural string
	Text                []byte
	Versions            map[string]json.RawMessage // and their schemas
}

// Definitions are CRDs of well-known projects.
func Definitions() ([]Definition, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(definitions))
	if err != nil {
		return nil, fmt.Errorf("unpack definitions: %w", err)
	}
	var texts []json.RawMessage
	if err := json.NewDecoder(unpacked).Decode(&texts); err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	var all []Definition
	for _, text := range texts {
		var read struct {
			Spec struct {
				Group    string
				Names    struct{ Kind, Plural string }
				Versions []struct {
					Name   string
					Schema struct{ OpenAPIV3Schema json.RawMessage }
				}
			}
		}
		if err := json.Unmarshal(text, &read); err != nil {
			return nil, fmt.Errorf("read a definition: %w", err)
		}
		d := Definition{read.Spec.Group, read.Spec.Names.Kind, read.Spec.Names.Plural, text, map[string]json.RawMessage{}}
		for _, v := range read.Spec.Versions {
			d.Versions[v.Name] = v.Schema.OpenAPIV3Schema
		}
		all = append(all, d)
	}
	return all, nil
}
