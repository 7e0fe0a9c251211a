package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// snapshotCommand is what was asked for.
type snapshotCommand struct {
	target
	request control.SnapshotRequest
	wait    bool
	list    bool
	output  string
}

func newSnapshotCommand() *cobra.Command {
	var s snapshotCommand
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Ask a running exporter for a full snapshot, or see which are owed",
		Long: `snapshot makes a running exporter compare resources with the cluster and send every object of them again, as sync, or
as replaced or deleted where a sink did not have it so. The snapshot is owed from then on, also if the exporter is
restarted before its end. It is asked for over the loopback interface: run this on the exporter's host or in its pod.

With --list it shows which snapshots are owed, for whatever reason, and how far each is.`,
		Example: `  exporter snapshot --state-dir ./state --wait
  exporter snapshot --resources pods,deployments.apps --sink bus
  exporter snapshot --list
  kubectl exec deploy/kubecdc -- exporter snapshot --resources pods`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(cmd); err != nil {
				return err
			}
			client, err := s.client()
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), client, stdout(cmd), stderr(cmd))
		},
	}
	s.register(cmd)
	return cmd
}

func (s *snapshotCommand) register(cmd *cobra.Command) {
	s.target.register(cmd)
	set := cmd.Flags()
	set.StringSliceVar(&s.request.Resources, "resources", nil, "resources as kubectl names them, or as they are configured (default: all)")
	set.StringVar(&s.request.Sink, "sink", "", "only this sink (default: all)")
	set.BoolVar(&s.wait, "wait", false, "wait until every sink has the whole snapshot, show how far it is, and print the result")
	set.BoolVar(&s.list, "list", false, "show the snapshots that are owed, and ask for none")
	set.StringVarP(&s.output, "output", "o", "table", "of --list: table, or json: one object per line")
}

// ofRequests are the flags that say what is asked for.
func ofRequests() []string { return []string{"resources", "sink", "wait"} }

// check refuses a command line that asks for two things.
func (s *snapshotCommand) check(cmd *cobra.Command) error {
	if err := errors.Join(checkOutput(s.output, "table"), s.target.check(cmd)); err != nil {
		return err
	}
	if cmd.Flags().Changed("output") && !s.list {
		return usage.Errorf("--output: only --list prints a table")
	}
	for _, name := range ofRequests() {
		if s.list && cmd.Flags().Changed(name) {
			return usage.Errorf("--list and --%s: --list shows all snapshots and asks for none: leave out one of them", name)
		}
	}
	return nil
}

func (s *snapshotCommand) run(ctx context.Context, client *control.Client, out, errOut *console.Screen) error {
	if s.list {
		return s.show(ctx, client, out, errOut)
	}
	snapshot, err := client.Snapshot(ctx, s.request)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "a full snapshot of %s is owed to %s\n", strings.Join(snapshot.Streams, ", "), strings.Join(snapshot.Sinks, ", "))
	if !s.wait {
		return nil
	}
	return await(ctx, client, snapshot, out, errOut)
}

// show lists what is owed.
func (s *snapshotCommand) show(ctx context.Context, client *control.Client, out, errOut io.Writer) error {
	list, err := client.Owed(ctx)
	switch {
	case err != nil:
		return err
	case s.output == "json":
		return console.EncodeOwed(list.Owed, out)
	case len(list.Owed) == 0:
		fmt.Fprintln(errOut, "no snapshot is owed")
		return nil
	}
	return console.PrintOwed(list.Owed, out)
}

// await shows how far the snapshot is until it is delivered.
func await(ctx context.Context, client *control.Client, snapshot *control.Snapshot, out, errOut *console.Screen) error {
	waiting := console.NewWaiting(errOut, console.IsTerminal(errOut) && os.Getenv("TERM") != "dumb")
	found, err := client.Wait(ctx, snapshot, waiting.Show)
	waiting.End()
	if ctx.Err() != nil {
		return errors.New("wait for the snapshot: stopped: it goes on without this command")
	}
	if err != nil {
		return fmt.Errorf("wait for the snapshot, which stays requested, even over a restart: %w", err)
	}
	return console.PrintReconciles(found, out)
}
