package objects

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

// documents are those of OpenAPI v3 of Kubernetes 1.36.3, without descriptions.
//
//go:embed testdata/openapi-1.36.3.json.gz
var documents []byte

// Documents are the schemas that an API server publishes of its built-in resources, by their group and version: v1,
// apps/v1.
func Documents() (map[string][]byte, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(documents))
	if err != nil {
		return nil, fmt.Errorf("unpack documents: %w", err)
	}
	var texts map[string]json.RawMessage
	if err := json.NewDecoder(unpacked).Decode(&texts); err != nil {
		return nil, fmt.Errorf("read documents: %w", err)
	}
	all := map[string][]byte{}
	for path, text := range texts {
		_, version, _ := strings.Cut(path, "/")
		all[version] = text
	}
	return all, nil
}
