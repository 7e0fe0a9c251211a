// Command generate writes the reference of the configuration into a file.
package main

import (
	"fmt"
	"os"

	"github.com/kubecdc/kubecdc/test/reference"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], reference.Markdown(), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
