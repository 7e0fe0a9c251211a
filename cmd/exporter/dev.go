package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app"
	"github.com/kubecdc/kubecdc/internal/config"
)

// devResources are watched where nothing else is asked for: what a person changes, and nothing that ticks by itself.
const devResources = "namespaces,pods,services,configmaps,deployments.apps,replicasets.apps,jobs.batch"

func newDevCommand() *cobra.Command {
	f := new(flags)
	var natsAddress string
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Stream into an embedded JetStream and print each change as it comes back out",
		Long: `dev runs the whole line on one machine: it starts a NATS server with JetStream, streams the changes into it, and
prints each one as it comes back out of the stream. Any NATS client can subscribe beside it.`,
		Example: `  exporter dev
  exporter dev --resources pods,events --state-dir ./state
  nats subscribe 'k8s.>' --server nats://127.0.0.1:4222`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.Dev(cmd.Context(), app.DevOptions{
				Access: f.access, StateDir: f.config.StateDir, Address: natsAddress, Out: stdout(cmd), ErrOut: stderr(cmd), StopTimeout: stopTimeout,
				Configure: func(dir string, embedded config.Sink) (*config.Config, error) { return devConfig(f, dir, embedded) },
			})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&natsAddress, "nats-listen", "127.0.0.1:4222", "address of the embedded NATS server")
	return cmd
}

// devConfig is the user's configuration with the embedded server as its first sink.
func devConfig(f *flags, dir string, embedded config.Sink) (*config.Config, error) {
	f.config.StateDir = filepath.Join(dir, "state")
	if f.file == "" && len(f.config.Resources) == 0 {
		f.config.Resources = []string{devResources}
	}
	if f.config.Listen == "" {
		f.config.Listen = "127.0.0.1:0"
	}
	return f.load(func(cfg *config.Config) {
		cfg.Sinks = append([]config.Sink{embedded}, cfg.Sinks...)
		cfg.Default()
	})
}
