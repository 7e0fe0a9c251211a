package main

import (
	"io"

	"github.com/spf13/cobra"
)

// stdout and stderr are where a command writes.
func stdout(cmd *cobra.Command) *screen { return screenOn(cmd.OutOrStdout()) }
func stderr(cmd *cobra.Command) *screen { return screenOn(cmd.ErrOrStderr()) }

// records is where a run writes its records for standard output: as they are, unless a terminal shows them.
func records(cmd *cobra.Command) io.Writer {
	out := stdout(cmd)
	if isTerminal(out) {
		return out
	}
	return out.to
}
