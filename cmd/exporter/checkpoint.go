package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/usage"
)

func newCheckpointCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "Show the saved state, or change that of a stopped exporter",
		Example: `  exporter checkpoint show --state-dir ./state
  exporter checkpoint reset --state-dir ./state --yes`,
	}
	onlyCommands(cmd)
	cmd.PersistentFlags().StringVar(&dir, "state-dir", defaultStateDir, "directory of the saved state")
	cmd.AddCommand(newShowCommand(&dir), newSetCommand(&dir), newForgetSinkCommand(&dir), newResetCommand(&dir), newRestoreCommand())
	return cmd
}

func newShowCommand(dir *string) *cobra.Command {
	var output string
	var l logged
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print positions, inventory sizes and marks",
		Long: `show prints the saved state. It asks a running exporter, and reads the directory of a stopped one.

STREAM           a resource, with its namespace where each has a stream of its own
SINK             a sink that is configured, or that was and is not forgotten
RESOURCEVERSION  the position: the sink has every change up to this version
OBJECTS          how many objects the sink has of it
COMPARING        why the sink is being compared with the cluster
SELECTOR         what chooses the objects

MARK             the sink's place in its own log, as the sink writes it: a file's length, a stream's sequence, a topic's offsets

OWED SNAPSHOT OF a stream of which the sink is to be sent every object, and REASON why

With --log it shows the state that the log of the state holds, which the configuration names with state.log.`,
		Example: `  exporter checkpoint show --state-dir ./state -o json
  exporter checkpoint show --log -f config.yaml`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text"); err != nil {
				return err
			}
			if l.log || l.file != "" {
				return l.show(cmd, output)
			}
			return show(cmd.Context(), *dir, output, stdout(cmd))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.Flags().BoolVar(&l.log, "log", false, "show what the log of the state holds; needs -f")
	l.register(cmd)
	return cmd
}

func show(ctx context.Context, dir, output string, out io.Writer) error {
	state, err := saved.Read(ctx, func() (*control.Client, error) { return control.Locate(dir) }, dir)
	if err != nil {
		return saved.Explain(err)
	}
	if output == "json" {
		return printJSON(state, out)
	}
	return console.PrintState(state, out)
}

func newSetCommand(dir *string) *cobra.Command {
	var stream, sink, version string
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set the position of one stream",
		Long: `set makes a stream continue from a resourceVersion. Changes between the two positions are skipped, or sent again.
What the sinks have stays as it is, so that the next reconcile finds what is missing. With --sink it is set for one sink,
without for all that take the stream.`,
		Example: "  exporter checkpoint set --state-dir ./state --stream deployments.apps --resource-version 123456",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkSetFlags(stream, version); err != nil {
				return err
			}
			before, err := saved.SetPosition(cmd.Context(), *dir, stream, sink, version)
			if err == nil {
				fmt.Fprintf(stdout(cmd), "%s: %s -> %s\n", stream, before, version)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&stream, "stream", "", "stream, as show prints it")
	cmd.Flags().StringVar(&sink, "sink", "", "name of a sink, as show prints it (default: all)")
	cmd.Flags().StringVar(&version, "resource-version", "", "position to continue from")
	return cmd
}

func checkSetFlags(stream, version string) error {
	var errs []error
	if stream == "" {
		errs = append(errs, usage.Errorf("--stream is missing: give a stream as exporter checkpoint show prints it"))
	}
	if _, err := strconv.ParseUint(version, 10, 64); version == "" {
		errs = append(errs, usage.Errorf("--resource-version is missing: give a number like an object's metadata.resourceVersion"))
	} else if err != nil {
		errs = append(errs, usage.Errorf("--resource-version %q: want a number like an object's metadata.resourceVersion", version))
	}
	return usage.Several("command line", errs...)
}

func newResetCommand(dir *string) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "reset",
		Short:   "Remove the saved state: the next start begins with a full snapshot",
		Example: "  exporter checkpoint reset --state-dir ./state --yes",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return usage.Errorf("reset removes the state in %s for good: confirm it with --yes", *dir)
			}
			err := saved.Reset(cmd.Context(), *dir)
			if err == nil {
				fmt.Fprintf(stdout(cmd), "the state in %s is removed\n", *dir)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "confirm the removal")
	return cmd
}
