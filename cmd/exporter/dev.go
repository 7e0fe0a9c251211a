package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/app"
	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/embedded"
)

// devPoll is how often the stream is read on.
const devPoll = 100 * time.Millisecond

// devResources are watched where nothing else is asked for: what a person changes, and nothing that ticks by itself.
const devResources = "namespaces,pods,services,configmaps,deployments.apps,replicasets.apps,jobs.batch"

func newDevCommand() *cobra.Command {
	f, address := new(flags), ""
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Stream into an embedded JetStream and print each change as it comes back out",
		Long: `dev runs the whole line on one machine: it starts a NATS server with JetStream, streams the changes into it, and
prints each one as it comes back out of the stream. Any NATS client can subscribe beside it.`,
		Example: `  exporter dev
  exporter dev --resources pods,events --state-dir ./state
  nats subscribe 'k8s.>' --server nats://127.0.0.1:4222`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			dir := f.config.StateDir
			if dir == "" {
				if dir, err = os.MkdirTemp("", "kubecdc-dev-"); err != nil {
					return fmt.Errorf("make a temporary state directory: %w: give one with --state-dir", err)
				}
				defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			}
			server, err := startEmbedded(cmd.Context(), address, filepath.Join(dir, "jetstream"))
			if err != nil {
				return err
			}
			defer server.Shutdown()
			cfg, err := f.loadDev(dir, config.Sink{Name: "dev", NATS: &config.NATS{URL: server.URL(), Stream: "K8S"}})
			if err != nil {
				return err
			}
			fmt.Fprintf(stderr(cmd), "NATS with JetStream at %s, stream %s; state in %s\n", server.URL(), cfg.Sinks[0].NATS.Stream, dir)
			return develop(cmd, f.access, cfg)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&address, "nats-listen", "127.0.0.1:4222", "address of the embedded NATS server")
	return cmd
}

// loadDev is the configuration, the first sink of which is the embedded server's.
func (f *flags) loadDev(dir string, embedded config.Sink) (*config.Config, error) {
	f.config.StateDir = filepath.Join(dir, "state")
	if f.file == "" && len(f.config.Resources) == 0 {
		f.config.Resources = []string{devResources}
	}
	f.config.Listen = cmp.Or(f.config.Listen, "127.0.0.1:0")
	return f.loadWith(func(cfg *config.Config) {
		cfg.Sinks = append([]config.Sink{embedded}, cfg.Sinks...)
		cfg.Default()
	})
}

// develop runs the whole line, and prints what comes back out of the first sink.
func develop(cmd *cobra.Command, access cluster.Access, cfg *config.Config) error {
	ctx := cmd.Context()
	c, err := cluster.Find(ctx, access, cfg)
	if err != nil {
		return err
	}
	reader, err := destination.NewReader(&cfg.Sinks[0], c, sink.Start{End: true})
	if err != nil {
		return err
	}
	log := &console.Log{Printer: console.NewPrinter(stdout(cmd), console.Style{Brief: true}), Poll: devPoll, Diff: true}
	readCtx, stopReading := context.WithCancel(ctx)
	var reading errgroup.Group
	reading.Go(func() error {
		err := task.IgnoreStop(readCtx, log.Follow(readCtx, reader))
		return errors.Join(err, reader.Close())
	})
	err = app.Run(ctx, app.RunOptions{Access: access, Config: cfg, Out: stdout(cmd), ErrOut: stderr(cmd), StopTimeout: stopTimeout})
	stopReading()
	return errors.Join(err, reading.Wait())
}

// startEmbedded starts the NATS server on host:port. It finds an address that cannot be listened on before the server
// does, which tries for long and says less.
func startEmbedded(ctx context.Context, address, storeDir string) (*embedded.Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	var wrong *net.AddrError
	var noPort *net.DNSError
	switch {
	case errors.As(err, &noPort):
		return nil, usage.Errorf("--nats-listen %q: %s: want host:port", address, noPort.Err)
	case errors.As(err, &wrong):
		return nil, usage.Errorf("--nats-listen %q: %s: want host:port", address, wrong.Err)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w: choose another address with --nats-listen", address, control.Cause(err))
	}
	if err := listener.Close(); err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(address) // which could be listened on
	return embedded.Start(storeDir, host, listener.Addr().(*net.TCPAddr).Port)
}
