package main

import (
	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app"
	"github.com/kubecdc/kubecdc/internal/config"
)

func newCheckCommand() *cobra.Command {
	f := new(flags)
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check configuration, API server, permissions and brokers, and change nothing",
		Long: `check reports every problem at once: mistakes in the configuration, an API server that does not answer, resources
that may not be listed and watched, sinks that write to one place, and sinks that cannot be written to. It changes nothing anywhere.

The exit code is 0 where nothing is wrong, 2 where the command line or the configuration must be changed, and 1 where
only something else is wrong, such as a broker that does not answer.`,
		Example: `  exporter check -f config.yaml`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load(func(*config.Config) {})
			if err != nil {
				return err
			}
			return app.Check(cmd.Context(), f.access, cfg, stdout(cmd))
		},
	}
	f.register(cmd)
	return cmd
}
