package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// krew writes the manifest by which krew installs the exporter as kubectl cdc, from the archives on the release's page.
func (o *order) krew(binaries []binary) error {
	var platforms []map[string]any
	for _, b := range binaries {
		name := o.archiveOf(&b)
		content, err := os.ReadFile(filepath.Join(o.out, name))
		if err != nil {
			return err
		}
		platforms = append(platforms, map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": b.os, "arch": b.arch}},
			"uri":      "https://github.com/kubecdc/kubecdc/releases/download/" + o.version + "/" + name,
			"sha256":   fmt.Sprintf("%x", sha256.Sum256(content)),
			"bin":      "exporter",
		})
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "cdc"},
		"spec": map[string]any{
			"version":          o.version,
			"homepage":         "https://github.com/kubecdc/kubecdc",
			"shortDescription": "Stream changes to Kafka, NATS JetStream and files",
			"description": "Streams every change of chosen resources to Kafka, NATS JetStream and files, once and in\n" +
				"order per object. Begin with \"kubectl cdc check -f config.yaml\", which changes nothing.\n",
			"platforms": platforms,
		},
	})
	if err != nil {
		return fmt.Errorf("write krew's manifest: %w", err)
	}
	return os.WriteFile(filepath.Join(o.out, "cdc.yaml"), text, 0o644)
}
