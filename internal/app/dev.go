package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

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

// DevOptions are what dev runs.
type DevOptions struct {
	Access      cluster.Access
	StateDir    string // "" is one that is removed in the end
	Address     string // of the embedded NATS server
	Out, ErrOut *console.Screen
	StopTimeout time.Duration
	// Configure makes the configuration, the first sink of which is the embedded server's.
	Configure func(dir string, embedded config.Sink) (*config.Config, error)
}

// Dev runs the whole line into an embedded NATS server, and prints what comes back out.
func Dev(ctx context.Context, o DevOptions) (err error) {
	dir := o.StateDir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "kubecdc-dev-"); err != nil {
			return fmt.Errorf("make a temporary state directory: %w: give one with --state-dir", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	server, err := startEmbedded(ctx, o.Address, filepath.Join(dir, "jetstream"))
	if err != nil {
		return err
	}
	defer server.Shutdown()
	cfg, err := o.Configure(dir, config.Sink{Name: "dev", NATS: &config.NATS{URL: server.URL(), Stream: "K8S"}})
	if err != nil {
		return err
	}
	fmt.Fprintf(o.ErrOut, "NATS with JetStream at %s, stream %s; state in %s\n", server.URL(), cfg.Sinks[0].NATS.Stream, dir)
	c, err := cluster.Find(ctx, o.Access, cfg)
	if err != nil {
		return err
	}
	reader, err := destination.NewReader(&cfg.Sinks[0], c, sink.Start{End: true})
	if err != nil {
		return err
	}
	log := &console.Log{Printer: console.NewPrinter(o.Out, console.Style{Brief: true}), Poll: devPoll, Diff: true}
	readCtx, stopReading := context.WithCancel(ctx)
	var reading errgroup.Group
	reading.Go(func() error {
		err := task.IgnoreStop(readCtx, log.Follow(readCtx, reader))
		return errors.Join(err, reader.Close())
	})
	err = Run(ctx, RunOptions{Access: o.Access, Config: cfg, Out: o.Out, ErrOut: o.ErrOut, StopTimeout: o.StopTimeout})
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
