package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/usage"
)

func newForgetSinkCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "forget-sink NAME",
		Short: "Forget a sink and everything kept for it; if it returns, it is new",
		Long: `forget-sink forgets a sink of a stopped exporter: its mark, what it has and how far it is, and what waits for it on
disk. If a sink of the name is configured later, it is new: it gets everything, and
is not told which of its objects are gone.`,
		Example: "  exporter checkpoint forget-sink archive --state-dir ./state",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("give the name of one sink, as exporter checkpoint show prints it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := saved.ForgetSink(cmd.Context(), *dir, args[0])
			if err == nil {
				fmt.Fprintf(stdout(cmd), "sink %s is forgotten\n", args[0])
			}
			return err
		},
	}
}
