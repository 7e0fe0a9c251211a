// Command generate writes the JSON Schemas of what the exporter writes into a directory.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubecdc/kubecdc/internal/schema"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIRECTORY")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	files, err := schema.Files()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), text, 0o644); err != nil {
			return fmt.Errorf("write schema %s: %w", name, err)
		}
	}
	return nil
}
