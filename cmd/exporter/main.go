package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/usage"
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
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage.Errorf("%w: %ssee %s --help", err, nearFlag(cmd, err), cmd.CommandPath())
	})
	root.AddCommand(newRunCommand(), newDevCommand(), newCheckCommand(), newSnapshotCommand(), newVerifyCommand(), newTailCommand(),
		newInventoryCommand(), newDeadLetterCommand(), newCheckpointCommand(), newSchemaCommand(), newVersionCommand(), newManCommand())
	onlyCommands(root)
	root.SetGlobalNormalizationFunc(formerName)
	return root
}
