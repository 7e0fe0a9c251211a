package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// version is set by the linker.
var version = "devel"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintf(console.On(os.Stderr), "exporter: %v\n", err)
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
  exporter inventory list --resource pods -n shop
  exporter deadletter list
  exporter checkpoint show`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(newRunCommand(), newDevCommand(), newCheckCommand(), newSnapshotCommand(), newVerifyCommand(), newTailCommand(),
		newInventoryCommand(), newDeadLetterCommand(), newCheckpointCommand(), newVersionCommand(), newManCommand())
	onlyCommands(root)
	return root
}

// onlyCommands makes a command that is nothing without one of its own commands say so.
func onlyCommands(cmd *cobra.Command) {
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SuggestionsMinimumDistance = 2
}

// noArguments refuses what is neither a flag nor a command.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unexpected argument %q: ", withoutLogin(args[0]))
	if cmd.HasAvailableSubCommands() {
		text = fmt.Sprintf("unknown command %q: ", withoutLogin(args[0]))
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("did you mean %s? ", strings.Join(near, " or "))
		}
	}
	return usage.Wrap(errors.New(text + "see " + cmd.CommandPath() + " --help"))
}

// withoutLogin hides what may be the password of a URL that was put in the wrong place.
func withoutLogin(text string) string {
	if at := strings.LastIndex(text, "@"); at >= 0 {
		return "…" + text[at:]
	}
	return text
}
