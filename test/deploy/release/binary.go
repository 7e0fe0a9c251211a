package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binary is the exporter for one platform.
type binary struct {
	os, arch string
	content  []byte
}

// build makes the binaries as the Dockerfile does: static, and with no path, time or build id in them.
func (o *order) build() ([]binary, error) {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var all []binary
	for _, platform := range o.platforms {
		system, arch, _ := strings.Cut(platform, "/")
		path := filepath.Join(dir, "exporter")
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "noembedded",
			"-ldflags", "-s -w -buildid= -X main.version="+o.version, "-o", path, "./cmd/exporter")
		cmd.Dir = o.root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOOS="+system, "GOARCH="+arch, "GOWORK=off")
		if output, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build for %s: %w\n%s", platform, err, output)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, binary{system, arch, content})
	}
	return all, nil
}
