package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/console"
)

// snapshotCommand is what was asked for.
type snapshotCommand struct {
	target
	request control.SnapshotRequest
	wait    bool
	list    bool
	output  string
	steer   map[string]*[]string // IDs, by what is to be done
}

func newSnapshotCommand() *cobra.Command {
	var s snapshotCommand
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Ask a running exporter for a full snapshot, or see which are owed",
		Long: `snapshot makes a running exporter compare resources with the cluster and send every object of them again, as sync, or
as replaced or deleted where a sink did not have it so. The snapshot is owed from then on, also if the exporter is
restarted before its end. It is asked for over the loopback interface: run this on the exporter's host or in its pod.

With -n, -l and --name it is of a part of the objects, and says nothing of the others. What a selector does not choose
is never told to be gone.

With --list it shows which snapshots are owed, for whatever reason, and how far each is. One of them can be paused,
resumed or stopped by its ID. A paused one stays paused over a restart and goes on where it was. A stopped one has no
snapshot.end. Only requested ones and resyncs can be stopped: without others a sink would lack something.`,
		Example: `  exporter snapshot --state-dir ./state --wait
  exporter snapshot --resources pods,deployments.apps --sink bus
  exporter snapshot --resources pods -n shop -l app=web
  exporter snapshot --list
  exporter snapshot --pause 7mare7x
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
	set.StringVarP(&s.request.Namespace, "namespace", "n", "", "only objects of this namespace (default: all)")
	set.StringVarP(&s.request.Selector, "selector", "l", "", "only objects with these labels, as kubectl takes them: app=web (default: all)")
	set.StringVar(&s.request.Name, "name", "", "only objects of this name (default: all)")
	set.BoolVar(&s.wait, "wait", false, "wait until every sink has the whole snapshot, and print the result")
	set.BoolVar(&s.list, "list", false, "show the snapshots that are owed, and ask for none")
	s.steer = map[string]*[]string{}
	for do, usage := range map[string]string{
		control.Pause: "make the snapshot with this ID wait", control.Resume: "make a paused snapshot go on", control.Stop: "make a requested snapshot or a resync end before it is complete",
	} {
		s.steer[do] = set.StringSlice(do, nil, usage)
	}
	set.StringVarP(&s.output, "output", "o", "table", "of --list: table, or json: one object per line")
}

// check refuses a command line that asks for two things.
func (s *snapshotCommand) check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("output") && !s.list {
		return usage.Errorf("--output: only --list prints a table")
	}
	var asked []string
	for _, does := range [][]string{{"list"}, {control.Pause}, {control.Resume}, {control.Stop}, {"resources", "sink", "namespace", "selector", "name", "wait"}} {
		at := slices.IndexFunc(does, cmd.Flags().Changed)
		if at >= 0 {
			asked = append(asked, does[at])
		}
	}
	if len(asked) > 1 {
		return usage.Errorf("--%s and --%s: each is a question of its own: leave out one of them", asked[0], asked[1])
	}
	for name, value := range map[string]string{"namespace": s.request.Namespace, "selector": s.request.Selector, "name": s.request.Name} {
		if cmd.Flags().Changed(name) && value == "" {
			return usage.Errorf("--%s: it is empty: leave it out for all objects", name)
		}
	}
	for do, ids := range s.steer {
		if cmd.Flags().Changed(do) && (len(*ids) == 0 || slices.Contains(*ids, "")) {
			return usage.Errorf("--%s: give the ID of a snapshot, as --list shows it", do)
		}
	}
	return nil
}

func (s *snapshotCommand) run(ctx context.Context, client *control.Client, out, errOut *console.Screen) error {
	if s.list {
		return s.show(ctx, client, out, errOut)
	}
	for do, ids := range s.steer {
		if len(*ids) == 0 {
			continue
		}
		if err := client.Steer(ctx, control.SteerRequest{Do: do, IDs: *ids}); err != nil {
			return err
		}
		done := map[string]string{control.Pause: "paused", control.Resume: "resumed", control.Stop: "stopped"}[do]
		_, err := fmt.Fprintf(out, "%s: %s\n", done, strings.Join(*ids, ", "))
		return err
	}
	snapshot, err := client.Snapshot(ctx, s.request)
	if err != nil {
		return err
	}
	limited := ""
	if text := snapshot.Limits.String(); text != "" {
		limited = " (" + text + ")"
	}
	fmt.Fprintf(out, "a full snapshot of %s%s is owed to %s\n", strings.Join(snapshot.Streams, ", "), limited, strings.Join(snapshot.Sinks, ", "))
	if !s.wait {
		return nil
	}
	found, err := client.Wait(ctx, snapshot)
	switch _, stopped := errors.AsType[*control.StoppedError](err); {
	case ctx.Err() != nil:
		return errors.New("wait for the snapshot: stopped: it goes on without this command")
	case stopped:
		return fmt.Errorf("wait for the snapshot: %w", err)
	case err != nil:
		return fmt.Errorf("wait for the snapshot, which stays requested, even over a restart: %w", err)
	}
	return console.PrintSnapshots(found, out)
}

// show lists what is owed.
func (s *snapshotCommand) show(ctx context.Context, client *control.Client, out, errOut io.Writer) error {
	list, err := client.Owed(ctx)
	if err != nil {
		return err
	}
	asJSON := s.output == "json"
	if len(list.Owed) == 0 && !asJSON {
		fmt.Fprintln(errOut, "no snapshot is owed")
		return nil
	}
	return console.PrintOwed(list.Owed, asJSON, out)
}
