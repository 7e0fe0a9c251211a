package main

import (
	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/observe/console"
)

// stdout and stderr are where a command writes.
func stdout(cmd *cobra.Command) *console.Screen { return console.On(cmd.OutOrStdout()) }
func stderr(cmd *cobra.Command) *console.Screen { return console.On(cmd.ErrOrStderr()) }
