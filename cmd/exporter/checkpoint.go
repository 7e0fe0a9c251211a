package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/console"
)

func newCheckpointCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "Show the saved state, or change that of a stopped exporter",
		Example: `  exporter checkpoint show --state-dir ./state
  exporter checkpoint reset --state-dir ./state --yes`,
	}
	cmd.PersistentFlags().StringVar(&dir, "state-dir", defaultStateDir, "directory of the saved state")
	return group(cmd, newShowCommand(&dir), newSetCommand(&dir), newForgetSinkCommand(&dir), newResetCommand(&dir), newRestoreCommand())
}

func newShowCommand(dir *string) *cobra.Command {
	var output string
	f, fromLog := new(flags), false
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print positions, inventory sizes and marks",
		Long: `show prints the saved state. It asks a running exporter, and reads the directory of a stopped one.

STREAM           a resource, with its namespace where each has a stream of its own
SINK             a sink that is configured, or that was and is not forgotten
RESOURCEVERSION  the position: the sink has every change up to this version
OBJECTS          how many objects the sink has of it
SNAPSHOT         why one is under way
SELECTOR         what chooses the objects

MARK             the sink's place in its own log, as the sink writes it: a file's length, a stream's sequence, a topic's offsets

OWED SNAPSHOT OF a stream of which the sink is to be sent every object, and REASON why

With --log it shows the state that the log of the state holds, which the configuration names with state.log.`,
		Example: `  exporter checkpoint show --state-dir ./state -o json
  exporter checkpoint show --log -f config.yaml`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := f.readState(cmd, *dir, fromLog)
			if err != nil {
				return err
			}
			state.Configurations = nil // they are hashes
			if output == "json" {
				return console.PrintJSON(state, stdout(cmd))
			}
			if log := state.Log; log != nil {
				fmt.Fprintf(stdout(cmd), "LOG  %s, saved %s, %d bytes in %d messages\n\n", log.Place, log.Saved.Format(time.RFC3339), log.Bytes, log.Messages)
			}
			return console.PrintState(state.State, stdout(cmd))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.Flags().BoolVar(&fromLog, "log", false, "show what the log of the state holds; needs -f")
	f.registerLog(cmd)
	return cmd
}

func newSetCommand(dir *string) *cobra.Command {
	var stream, sink, version string
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set the position of one stream",
		Long: `set makes a stream continue from a resourceVersion. Changes between the two positions are skipped, or sent again.
What the sinks have stays as it is, so that the next snapshot finds what is missing. With --sink it is set for one sink,
without for all that take the stream.`,
		Example: "  exporter checkpoint set --state-dir ./state --stream deployments.apps --resource-version 123456",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var noStream, noVersion error
			if stream == "" {
				noStream = usage.Errorf("--stream is missing: give a stream as exporter checkpoint show prints it")
			}
			if _, err := strconv.ParseUint(version, 10, 64); version == "" {
				noVersion = usage.Errorf("--resource-version is missing: give a number like an object's metadata.resourceVersion")
			} else if err != nil {
				noVersion = usage.Errorf("--resource-version %q: want a number like an object's metadata.resourceVersion", version)
			}
			if err := usage.Several("command line", noStream, noVersion); err != nil {
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

// registerLog registers the flags that say which log of the state is meant.
func (f *flags) registerLog(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "config", "f", "", "configuration file (YAML) with state.log")
	f.registerAccess(cmd.Flags(), "kubeconfig file, for the cluster's name")
}

// loadLog is the configuration, in which the directory of the command line wins.
func (f *flags) loadLog(cmd *cobra.Command) (*config.Config, error) {
	if f.file == "" {
		return nil, usage.Errorf("-f is missing: give the configuration file that has state.log")
	}
	if flag := cmd.Flags().Lookup("state-dir"); flag != nil && flag.Changed {
		f.config.StateDir = flag.Value.String()
	}
	return f.load()
}

// readState reads the state in the directory, or that of the log.
func (f *flags) readState(cmd *cobra.Command, dir string, fromLog bool) (*task.LoggedState, error) {
	switch {
	case fromLog:
		cfg, err := f.loadLog(cmd)
		if err != nil {
			return nil, err
		}
		return task.ReadLog(cmd.Context(), f.access, cfg)
	case f.file != "":
		return nil, usage.Errorf("-f is for --log: a state is found with --state-dir")
	}
	state, _, err := saved.Read(cmd.Context(), func() (*control.Client, error) { return control.Locate(dir) }, dir)
	return &task.LoggedState{State: state}, saved.Explain(err)
}

func newRestoreCommand() *cobra.Command {
	f := new(flags)
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Fill an empty state directory from the log of the state",
		Long: `restore reads the log that the configuration names with state.log, and makes a state of it in the state directory,
with the dead letters. A directory that holds a state is refused. exporter run does the same by itself when its
directory is empty; restore is for looking at the state, or for preparing a volume. It does not stop an exporter that
writes the log: that happens when an exporter starts with the directory.`,
		Example: "  exporter checkpoint restore -f config.yaml --state-dir ./state",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.loadLog(cmd)
			if err != nil {
				return err
			}
			from, err := task.Restore(cmd.Context(), f.access, cfg)
			if err == nil {
				fmt.Fprintf(stdout(cmd), "the state in %s is that of %s, saved %s\n", cfg.State.Dir, from.Place, from.Saved.Format(time.RFC3339))
			}
			return err
		},
	}
	f.registerLog(cmd)
	return cmd
}

func newForgetSinkCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "forget-sink NAME",
		Short: "Forget a sink and everything kept for it; if it returns, it is new",
		Long: `forget-sink forgets a sink of a stopped exporter: its mark, what it has and how far it is, and what waits for it on
disk. If a sink of the name is configured later, it is new: it gets everything, and
is not told which of its objects are gone.`,
		Example: "  exporter checkpoint forget-sink archive --state-dir ./state",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("give the name of one sink, as exporter checkpoint show prints it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := saved.ForgetSink(cmd.Context(), *dir, args[0])
			if err == nil {
				fmt.Fprintf(stdout(cmd), "sink %s is forgotten\n", args[0])
			}
			return err
		},
	}
}
