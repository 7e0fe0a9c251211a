package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app"
	"github.com/kubecdc/kubecdc/internal/app/check"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/observe/console"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	console.PrintError(err, os.Stderr)
	os.Exit(app.ExitCode(err))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "exporter",
		Short: "Change data capture for Kubernetes",
		Long: `exporter streams every change of chosen Kubernetes resources to Kafka, NATS JetStream and files:
once, in order, and never silently lost.`,
		Example: `  exporter run -f config.yaml
  exporter check -f config.yaml
  exporter snapshot --resources pods --wait
  exporter inventory list --resources pods -n shop
  exporter deadletter list
  exporter checkpoint show`,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return checkShared(cmd.Flags()) },

		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage.Errorf("%w: %ssee %s --help", err, nearFlag(cmd, err), cmd.CommandPath())
	})
	return group(root, newRunCommand(), newDevCommand(), newCheckCommand(), newSnapshotCommand(), newVerifyCommand(), newTailCommand(),
		newInventoryCommand(), newDeadLetterCommand(), newCheckpointCommand(), newTasksCommand(), newSchemaCommand(), newVersionCommand())
}

func newCheckCommand() *cobra.Command {
	f := &flags{several: true}
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
			cfg, err := f.load()
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

func newRunCommand() *cobra.Command {
	f, acceptNewKeys := &flags{several: true}, false
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Stream changes until stopped",
		Long: `run streams the changes of the configured resources to the configured sinks until it is stopped by SIGINT or
SIGTERM. It continues where it stopped the last time, as the state directory says.

SIGHUP makes it give every sink a full snapshot of all that it takes; see also exporter snapshot.`,
		Example: `  exporter run -f config.yaml
  exporter run --resources pods,deployments.apps --sink nats://localhost:4222 --state-dir /var/lib/kubecdc
  exporter run --resources pods --sink kafka://kafka-0:9092,kafka-1:9092 --state-dir /var/lib/kubecdc
  exporter run --resources configmaps --sink - --state-dir ./state | jq .type`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load()
			if err != nil {
				return err
			}
			hangups, ignore := notifyHangups()
			defer ignore()
			return app.Run(cmd.Context(), app.RunOptions{
				Access: f.access, Config: cfg, Reload: f.load, Out: stdout(cmd).Records(), ErrOut: stderr(cmd), Hangups: hangups,
				StopTimeout: stopTimeout, AcceptNewKeys: acceptNewKeys,
			})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&acceptNewKeys, "accept-new-keys", false,
		"where the keys or topics of a compacted topic have changed, or no state knows it, end its keys with tombstones and send everything again")
	return cmd
}

// notifyHangups tells of each SIGHUP until the returned function is called. Where SIGHUP is ignored, as nohup has it,
// it stays ignored.
func notifyHangups() (hangups <-chan os.Signal, ignore func()) {
	if signal.Ignored(syscall.SIGHUP) {
		return nil, func() {}
	}
	notified := make(chan os.Signal, 1)
	signal.Notify(notified, syscall.SIGHUP)
	return notified, func() { signal.Stop(notified) }
}
