package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// logged says which log of the state is meant.
type logged struct {
	flags
	log bool
}

func (l *logged) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&l.file, "config", "f", "", "configuration file (YAML) with state.log")
	l.registerAccess(cmd.Flags(), "kubeconfig file, for the cluster's name")
}

// configured is the configuration, in which the directory of the command line wins.
func (l *logged) configured(cmd *cobra.Command) (*config.Config, error) {
	if l.file == "" {
		return nil, usage.Errorf("-f is missing: give the configuration file that has state.log")
	}
	if flag := cmd.Flags().Lookup("state-dir"); flag != nil && flag.Changed {
		l.config.StateDir = flag.Value.String()
	}
	return l.load(func(*config.Config) {})
}

func (l *logged) show(cmd *cobra.Command, output string) error {
	if !l.log {
		return usage.Errorf("-f is for --log: a state is found with --state-dir")
	}
	cfg, err := l.configured(cmd)
	if err != nil {
		return err
	}
	state, err := task.ReadLog(cmd.Context(), l.access, cfg)
	if err != nil {
		return err
	}
	if output == "json" {
		return printJSON(state, stdout(cmd))
	}
	fmt.Fprintf(stdout(cmd), "LOG  %s, saved %s, %d bytes in %d messages\n\n", state.Log.Place, state.Log.Saved.Format(time.RFC3339), state.Log.Bytes, state.Log.Messages)
	return console.PrintState(state.State, stdout(cmd))
}

func newRestoreCommand() *cobra.Command {
	var l logged
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
			cfg, err := l.configured(cmd)
			if err != nil {
				return err
			}
			from, err := task.Restore(cmd.Context(), l.access, cfg)
			if err == nil {
				fmt.Fprintf(stdout(cmd), "the state in %s is that of %s, saved %s\n", cfg.State.Dir, from.Place, from.Saved.Format(time.RFC3339))
			}
			return err
		},
	}
	l.register(cmd)
	return cmd
}
