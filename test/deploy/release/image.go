package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image is an OCI archive for all of Linux' platforms. It stands on nothing: beside the static binary it has the public
// authorities of Mozilla, which brokers' certificates may be signed by. docker load and skopeo read it.
func (o *order) image(binaries []binary) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range binaries {
		if b.os != "linux" {
			continue
		}
		made, err := o.imageOf(&b)
		if err != nil {
			return fmt.Errorf("make the image for %s: %w", b.arch, err)
		}
		platform := v1.Descriptor{Platform: &v1.Platform{OS: b.os, Architecture: b.arch}}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: made, Descriptor: platform})
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	entries, err := filesOf(dir)
	if err != nil {
		return err
	}
	archive, err := tarOf(entries)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "kubecdc_"+o.version+"_image.oci.tar"), archive, 0o644)
}

func (o *order) imageOf(b *binary) (v1.Image, error) {
	content, err := tarOf([]entry{
		{"usr/local/bin/exporter", 0o755, b.content},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, authorities()},
		{"etc/passwd", 0o644, []byte("nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
	})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	made, err := mutate.AppendLayers(base, layer)
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(made, o.configuration(made, b))
}

// configuration is what the Dockerfile says.
func (o *order) configuration(made v1.Image, b *binary) *v1.ConfigFile {
	file, err := made.ConfigFile()
	if err != nil { // it was made a moment ago
		file = &v1.ConfigFile{}
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = b.os, b.arch, v1.Time{Time: time.Unix(0, 0).UTC()}
	file.Config = v1.Config{
		User: "65532:65532", Entrypoint: []string{"/usr/local/bin/exporter"}, Cmd: []string{"run", "-f", "/etc/kubecdc/config/config.yaml"},
		ExposedPorts: map[string]struct{}{"8080": {}},
		Labels: map[string]string{
			"org.opencontainers.image.title": "kubecdc", "org.opencontainers.image.source": "https://github.com/kubecdc/kubecdc",
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.version": o.version,
		},
	}
	return file
}

// authorities are in the form in which Go looks for them.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
	}
	return text.Bytes()
}

// filesOf are the directory's files, in the order of their names.
func filesOf(dir string) (entries []entry, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		entries = append(entries, entry{filepath.ToSlash(name), 0o644, content})
		return err
	})
	return entries, err
}
