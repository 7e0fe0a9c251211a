package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/console"
)

// stdout and stderr are where a command writes.
func stdout(cmd *cobra.Command) *console.Screen { return console.On(cmd.OutOrStdout()) }
func stderr(cmd *cobra.Command) *console.Screen { return console.On(cmd.ErrOrStderr()) }

// records is where a run writes its records for standard output: as they are, unless a terminal shows them.
func records(cmd *cobra.Command) io.Writer {
	out := stdout(cmd)
	if console.IsTerminal(out) {
		return out
	}
	return out.To
}
