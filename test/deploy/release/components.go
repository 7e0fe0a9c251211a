package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// components lists what each binary is made of, as it says itself (go version -m), and under which licenses: a
// CycloneDX document for each. No time and no random number is in it.
func (o *order) components(binaries []binary) error {
	known := &licenses{root: o.root, found: map[string][]string{}}
	for _, b := range binaries {
		info, err := buildinfo.Read(bytes.NewReader(b.content))
		if err != nil {
			return fmt.Errorf("read what the binary for %s/%s is made of: %w", b.os, b.arch, err)
		}
		document, err := o.documentOf(&b, info, known)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("kubecdc_%s_%s_%s.cdx.json", o.version, b.os, b.arch)
		if err := os.WriteFile(filepath.Join(o.out, name), document, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (o *order) documentOf(b *binary, info *buildinfo.BuildInfo, known *licenses) ([]byte, error) {
	exporter := componentOf(cdx.ComponentTypeApplication, info.Main.Path, o.version)
	exporter.Name = "kubecdc exporter for " + b.os + "/" + b.arch
	exporter.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(b.content))}}
	exporter.Licenses = new(licensesOf([]string{"Apache-2.0"}))
	all, err := librariesOf(info, known)
	if err != nil {
		return nil, err
	}
	var on []string
	for i := range all {
		on = append(on, all[i].BOMRef)
	}
	made := cdx.NewBOM()
	made.Metadata = &cdx.Metadata{Component: &exporter}
	made.Components, made.Dependencies = &all, &[]cdx.Dependency{{Ref: exporter.BOMRef, Dependencies: &on}}
	var text bytes.Buffer
	err = cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(made, cdx.SpecVersion1_6)
	return text.Bytes(), err
}

// librariesOf are Go's own library and the modules.
func librariesOf(info *buildinfo.BuildInfo, known *licenses) ([]cdx.Component, error) {
	dirs, err := known.dirsOf(info.Deps)
	if err != nil {
		return nil, err
	}
	std := componentOf(cdx.ComponentTypeLibrary, "std", info.GoVersion)
	std.Licenses = new(licensesOf([]string{"BSD-3-Clause"}))
	all := []cdx.Component{std}
	for _, module := range info.Deps {
		one, err := moduleOf(module)
		if err != nil {
			return nil, err
		}
		under, err := known.of(module, dirs)
		if err != nil {
			return nil, err
		}
		one.Licenses = &under
		all = append(all, one)
	}
	return all, nil
}

func componentOf(of cdx.ComponentType, path, version string) cdx.Component {
	url := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cdx.Component{Type: of, BOMRef: url, PackageURL: url, Name: path, Version: version}
}

// moduleOf has the module's hash as go.sum has it: that of its files' hashes.
func moduleOf(module *debug.Module) (cdx.Component, error) {
	if module.Replace != nil {
		module = module.Replace
	}
	one := componentOf(cdx.ComponentTypeLibrary, module.Path, module.Version)
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
	if err != nil || len(sum) != sha256.Size {
		return one, fmt.Errorf("module %s %s has the sum %q, and no hash of a Go module", module.Path, module.Version, module.Sum)
	}
	one.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}}
	return one, nil
}
