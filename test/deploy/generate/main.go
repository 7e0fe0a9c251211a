// Command generate writes the files of package generated. Its argument is the root of the project.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/kubecdc/kubecdc/test/deploy/generated"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate ROOT")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// generate writes the schema first: the chart is rendered under it.
func generate(root string) error {
	path, content, err := generated.Schema(root)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, path), content, 0o644); err != nil {
		return err
	}
	files, err := generated.Kustomize(root)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
