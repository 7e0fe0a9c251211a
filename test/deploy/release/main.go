// Command release makes what a version consists of: static binaries, a list of the components of each, an image as an
// OCI archive, the chart's package, a manifest for krew, and their checksums. The same sources and the same version
// give the same bytes, whenever and wherever it runs.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// order is what is to be made, and where.
type order struct {
	root, out string
	version   string // v1.2.3
	platforms []string
}

func main() {
	var o order
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "of the binaries")
	flag.StringVar(&o.root, "root", ".", "the project")
	flag.StringVar(&o.out, "out", "dist/release", "directory for the files; it must not exist")
	flag.StringVar(&o.version, "version", "", "of the release, such as v1.2.3")
	flag.Parse()
	o.platforms = strings.Split(*platforms, ",")
	if err := o.make(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// isVersion is semantic versioning with a v, as Go modules and tags have it.
func isVersion(text string) bool {
	return regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`).MatchString(text)
}

func (o *order) make() error {
	if !isVersion(o.version) {
		return fmt.Errorf("version %q: want one such as v1.2.3: set VERSION", o.version)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	if files, err := os.ReadDir(o.out); err != nil || len(files) > 0 {
		return fmt.Errorf("directory %s has files already: remove them (%v)", o.out, err)
	}
	binaries, err := o.build()
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return o.archive(binaries) }, func() error { return o.components(binaries) },
		func() error { return o.image(binaries) }, o.chart, func() error { return o.krew(binaries) }, o.sums,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
