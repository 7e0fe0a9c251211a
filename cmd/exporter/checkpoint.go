package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/usage"
)

func newCheckpointCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "Look at the saved state, or change that of a stopped exporter",
		Example: `  exporter checkpoint show --state-dir ./state
  exporter checkpoint reset --state-dir ./state --yes`,
	}
	onlyCommands(cmd)
	cmd.PersistentFlags().StringVar(&dir, "state-dir", defaultStateDir, "directory of the saved state")
	cmd.AddCommand(newShowCommand(&dir), newSetCommand(&dir), newForgetSinkCommand(&dir), newResetCommand(&dir))
	return cmd
}

func newShowCommand(dir *string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "Print positions, inventory sizes and marks",
		Long:    "show prints the saved state. It asks a running exporter, and reads the directory of a stopped one.",
		Example: "  exporter checkpoint show --state-dir ./state -o json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text"); err != nil {
				return err
			}
			return show(cmd.Context(), *dir, output, stdout(cmd))
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func show(ctx context.Context, dir, output string, out io.Writer) error {
	state, err := savedState(ctx, dir)
	if err != nil {
		return explainState(err)
	}
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(state)
	}
	return console.PrintState(state, out)
}

// savedState comes from the running exporter, or from the directory of a stopped one.
func savedState(ctx context.Context, dir string) (state *control.State, err error) {
	client, err := control.Locate(dir)
	var stopped *control.NotRunningError
	if err == nil {
		return client.Checkpoint(ctx)
	}
	if !errors.As(err, &stopped) {
		return nil, err
	}
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return control.ReadState(store)
}

func newSetCommand(dir *string) *cobra.Command {
	var stream, version string
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Set the position of one stream",
		Long: `set makes a stream continue from a resourceVersion. Changes between the two positions are skipped, or sent again.
The inventory stays as it is, so that the next reconcile finds what is missing.`,
		Example: "  exporter checkpoint set --state-dir ./state --stream deployments.apps --resource-version 123456",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkSetFlags(stream, version); err != nil {
				return err
			}
			return setPosition(cmd.Context(), *dir, stream, version, stdout(cmd))
		},
	}
	cmd.Flags().StringVar(&stream, "stream", "", "stream as show prints it")
	cmd.Flags().StringVar(&version, "resource-version", "", "position to continue from")
	return cmd
}

func checkSetFlags(stream, version string) error {
	var errs []error
	if stream == "" {
		errs = append(errs, usage.Errorf("--stream is missing: give a stream as exporter checkpoint show prints it"))
	}
	if _, err := strconv.ParseUint(version, 10, 64); version == "" {
		errs = append(errs, usage.Errorf("--resource-version is missing: give a number, as an object's metadata.resourceVersion is"))
	} else if err != nil {
		errs = append(errs, usage.Errorf("--resource-version %q: want a number, as an object's metadata.resourceVersion is", version))
	}
	return usage.Several("command line", errs...)
}

func setPosition(ctx context.Context, dir, stream, version string, out io.Writer) (err error) {
	if err := probe(ctx, dir); err != nil {
		return explainState(err)
	}
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{})
	if err != nil {
		return explainState(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	before, found, err := store.Position(stream)
	if err != nil {
		return err
	}
	if !found {
		return unknownStream(store, dir, stream)
	}
	after := change.Position{ResourceVersion: version, Complete: true, Epoch: before.Epoch, Selector: before.Selector}
	if err := store.SetPosition(stream, after); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s -> %s\n", stream, before.ResourceVersion, version)
	return nil
}

func unknownStream(store *checkpoint.Store, dir, stream string) error {
	known, err := store.Positions()
	if err != nil {
		return err
	}
	have := "it has none"
	if len(known) > 0 {
		have = "it has " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	}
	return usage.Errorf("--stream %q: the state in %s has no such stream: %s", stream, dir, have)
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
			return reset(cmd.Context(), *dir, stdout(cmd))
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "really remove it")
	return cmd
}

// reset removes a state also where it is damaged or newer.
func reset(ctx context.Context, dir string, out io.Writer) error {
	if err := probe(ctx, dir); errors.Is(err, checkpoint.ErrNoState) {
		return err
	}
	if err := checkpoint.Discard(dir); err != nil {
		return explainState(err)
	}
	fmt.Fprintf(out, "the state in %s is removed\n", dir)
	return nil
}

// probe opens the state and leaves it as it is. A wrong path must neither be made a state nor be answered with success.
func probe(ctx context.Context, dir string) error {
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	return store.Close()
}

// explainState adds where else to look while an exporter runs.
func explainState(err error) error {
	var inUse *checkpoint.InUseError
	if errors.As(err, &inUse) {
		return fmt.Errorf("%w (exporter checkpoint show also shows a running exporter's state)", err)
	}
	return err
}
