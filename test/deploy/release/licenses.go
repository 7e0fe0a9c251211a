package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"
)

// leastKnown is how many percent of a license's text must be one that licensecheck knows; the rest is names and years.
const leastKnown = 75

// licenses finds the licenses of modules in their files, as pkg.go.dev does, each module once.
type licenses struct {
	root  string              // the project
	found map[string][]string // SPDX's ids, by directory
}

// of returns the module's licenses; dirs are the directories of modules by path.
func (l *licenses) of(module *debug.Module, dirs map[string]string) (cdx.Licenses, error) {
	dir := dirs[module.Path]
	if l.found[dir] == nil {
		ids, err := licensesIn(dir)
		if err != nil {
			return nil, fmt.Errorf("find the license of module %s %s: %w", module.Path, module.Version, err)
		}
		l.found[dir] = ids
	}
	return licensesOf(l.found[dir]), nil
}

// licensesOf says that all of them hold.
func licensesOf(ids []string) cdx.Licenses {
	if len(ids) == 1 {
		return cdx.Licenses{{License: &cdx.License{ID: ids[0]}}}
	}
	return cdx.Licenses{{Expression: strings.Join(ids, " AND ")}}
}

// dirsOf asks Go where the modules' files are. The build has downloaded them.
func (l *licenses) dirsOf(modules []*debug.Module) (map[string]string, error) {
	args := []string{"list", "-m", "-json=Path,Dir"}
	for _, module := range modules {
		args = append(args, module.Path)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = l.root
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules of %s: %w", l.root, err)
	}
	dirs := map[string]string{}
	for list := json.NewDecoder(strings.NewReader(string(text))); list.More(); {
		var one struct{ Path, Dir string }
		if err := list.Decode(&one); err != nil {
			return nil, fmt.Errorf("read the list of modules: %w", err)
		}
		dirs[one.Path] = one.Dir
	}
	return dirs, nil
}

// licensesIn are those of the license files in the directory, in the order of their names. A file that is none that
// anybody knows is an error: a person must look.
func licensesIn(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, file := range files {
		if file.IsDir() || !isLicense(file.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, err
		}
		known := licensecheck.Scan(text)
		if known.Percent < leastKnown {
			return nil, fmt.Errorf("%s in %s is no license that licensecheck knows (%.0f %%): read it, or leave the module out", file.Name(), dir, known.Percent)
		}
		for _, match := range known.Match {
			ids = append(ids, match.ID)
		}
	}
	if slices.Sort(ids); len(ids) == 0 {
		return nil, fmt.Errorf("%s has no license file: ask its authors, or leave the module out", dir)
	}
	return slices.Compact(ids), nil
}

func isLicense(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE") || strings.HasPrefix(name, "COPYING")
}
