package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/nats/embedded"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// devPoll is how often the stream is read on.
const devPoll = 100 * time.Millisecond

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
			return dev(cmd.Context(), f, natsAddress, stdout(cmd), stderr(cmd))
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&natsAddress, "nats-listen", "127.0.0.1:4222", "address of the embedded NATS server")
	return cmd
}

func dev(ctx context.Context, f *flags, natsAddress string, out, errOut *console.Screen) (err error) {
	dir, cleanUp, err := devDir(f.config.StateDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanUp()) }()
	if err := checkFree(ctx, natsAddress); err != nil {
		return err
	}
	server, err := startEmbedded(natsAddress, filepath.Join(dir, "jetstream"))
	if err != nil {
		return err
	}
	defer server.Shutdown()
	cfg, err := devConfig(f, dir, server.URL())
	if err != nil {
		return err
	}
	fmt.Fprintf(errOut, "NATS with JetStream at %s, stream %s; state in %s\n", server.URL(), cfg.Sinks[0].NATS.Stream, dir)
	return streamAndPrint(ctx, f, cfg, out, errOut)
}

// checkFree finds an address that cannot be listened on before the server does, which tries for long and says less.
func checkFree(ctx context.Context, address string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	var wrong *net.AddrError
	var noPort *net.DNSError
	switch {
	case errors.As(err, &noPort):
		return usage.Errorf("--nats-listen %q: %s: want host:port", address, noPort.Err)
	case errors.As(err, &wrong):
		return usage.Errorf("--nats-listen %q: %s: want host:port", address, wrong.Err)
	case err != nil:
		return fmt.Errorf("listen on %s: %w: choose another address with --nats-listen", address, cause(err))
	}
	return listener.Close()
}

// startEmbedded starts the NATS server on host:port.
func startEmbedded(address, storeDir string) (*embedded.Server, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage.Errorf("--nats-listen %q: %w: want host:port", address, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, usage.Errorf("--nats-listen %q: %w: want host:port", address, err)
	}
	return embedded.Start(embedded.Options{StoreDir: storeDir, Host: host, Port: int(port)})
}

// devDir is the given directory, or a temporary one that cleanUp removes.
func devDir(given string) (dir string, cleanUp func() error, err error) {
	if given != "" {
		return given, func() error { return nil }, nil
	}
	dir, err = os.MkdirTemp("", "kubecdc-dev-")
	if err != nil {
		return "", nil, fmt.Errorf("make a temporary state directory: %w: give one with --state-dir", err)
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// devConfig is the user's configuration with the embedded server as its first sink.
func devConfig(f *flags, dir, url string) (*config.Config, error) {
	f.config.StateDir = filepath.Join(dir, "state")
	if f.file == "" && len(f.config.Resources) == 0 {
		f.config.Resources = []string{devResources}
	}
	if f.config.Listen == "" {
		f.config.Listen = "127.0.0.1:0"
	}
	return f.load(func(cfg *config.Config) {
		embeddedSink := config.Sink{Name: "dev", NATS: &config.NATS{URL: url, Stream: formerStream}}
		cfg.Sinks = append([]config.Sink{embeddedSink}, cfg.Sinks...)
		cfg.Default()
	})
}

// streamAndPrint runs the line, and beside it a reader of the stream.
func streamAndPrint(ctx context.Context, f *flags, cfg *config.Config, out, errOut *console.Screen) error {
	c, err := findCluster(f, cfg)
	if err != nil {
		return err
	}
	reader, err := newReader(&cfg.Sinks[0], c, sink.Start{End: true})
	if err != nil {
		return err
	}
	log := &console.Log{Printer: console.NewPrinter(out, console.Style{Brief: true}), Poll: devPoll, Diff: true}
	readCtx, stopReading := context.WithCancel(ctx)
	var reading errgroup.Group
	reading.Go(func() error {
		err := ignoreStop(readCtx, log.Follow(readCtx, reader))
		return errors.Join(err, reader.Close())
	})
	// The changes are printed to the terminal, so its last line is not free for the progress.
	err = stream(ctx, f, cfg, stdio{out: out, errOut: struct{ io.Writer }{errOut}})
	stopReading()
	return errors.Join(err, reading.Wait())
}

// ignoreStop is nil where the error is only our own stop.
func ignoreStop(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
