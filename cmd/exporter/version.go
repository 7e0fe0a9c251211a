package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  exporter version",
		Args:    noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(stdout(cmd), "exporter %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
