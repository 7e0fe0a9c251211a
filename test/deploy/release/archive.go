package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// entry is one file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// tarOf is an archive that says nothing of when, where and by whom it was made.
func tarOf(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("archive %s: %w", e.name, err)
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, fmt.Errorf("archive %s: %w", e.name, err)
		}
	}
	err := w.Close() // writes the end
	return out.Bytes(), err
}

// write puts a compressed archive among the release's files.
func (o *order) write(name string, entries []entry) error {
	text, err := tarOf(entries)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, name), out.Bytes(), 0o644)
}

// archive puts each binary beside the license.
func (o *order) archive(binaries []binary) error {
	license, err := os.ReadFile(filepath.Join(o.root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, b := range binaries {
		if err := o.write(o.archiveOf(&b), []entry{{"exporter", 0o755, b.content}, {"LICENSE", 0o644, license}}); err != nil {
			return err
		}
	}
	return nil
}

// archiveOf is the name of a platform's archive.
func (o *order) archiveOf(b *binary) string {
	return fmt.Sprintf("kubecdc_%s_%s_%s.tar.gz", o.version, b.os, b.arch)
}

// chart packages the chart as helm package does, with the release's version.
func (o *order) chart() error {
	dir := filepath.Join(o.root, "deploy", "helm", "kubecdc")
	var entries []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && name == "Chart.yaml" {
			content, err = o.versioned(content)
		}
		entries = append(entries, entry{"kubecdc/" + filepath.ToSlash(name), 0o644, content})
		return err
	})
	if err != nil {
		return fmt.Errorf("package the chart: %w", err)
	}
	return o.write("kubecdc-"+strings.TrimPrefix(o.version, "v")+".tgz", entries)
}

// versioned is the chart's description with the release's version, without the v that Helm does not want.
func (o *order) versioned(description []byte) ([]byte, error) {
	var fields map[string]any
	if err := yaml.Unmarshal(description, &fields); err != nil {
		return nil, err
	}
	fields["version"], fields["appVersion"] = strings.TrimPrefix(o.version, "v"), strings.TrimPrefix(o.version, "v")
	return yaml.Marshal(fields)
}

// sums lists the checksums as sha256sum does, and reads with sha256sum -c.
func (o *order) sums() error {
	files, err := os.ReadDir(o.out)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(o.out, file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(content), file.Name())
	}
	return os.WriteFile(filepath.Join(o.out, "SHA256SUMS"), []byte(list.String()), 0o644)
}
