package main

import (
	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/check"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/console"
)

func newCheckCommand() *cobra.Command {
	f := new(flags)
	var output string
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check configuration, API server, permissions and brokers, and change nothing",
		Long: `check reports every problem at once: mistakes in the configuration, an API server that does not answer, resources
that may not be listed and watched, paths of drop, only and redact that no object has, a state of another cluster, an
address that is in use, sinks that write to one place, and sinks that cannot be written to. It changes nothing anywhere.

Beside an exporter that runs with the same state, what that exporter has open is no problem.

The exit code is 0 where nothing is wrong, 2 where the command line or the configuration must be changed, and 1 where
only something else is wrong, such as a broker that does not answer.`,
		Example: `  exporter check -f config.yaml
  exporter check -f config.yaml -o json | jq -r '.findings[] | select(.result == "problem") | .text'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text"); err != nil {
				return err
			}
			cfg, err := f.load(func(*config.Config) {})
			if err != nil {
				return err
			}
			return check.Run(cmd.Context(), f.access, cfg, &console.Findings{Out: stdout(cmd), JSON: output == "json"})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, or json: one document with every finding")
	return cmd
}
