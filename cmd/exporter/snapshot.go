package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/console"
	"github.com/kubecdc/kubecdc/internal/control"
)

func newSnapshotCommand() *cobra.Command {
	var t target
	var request control.SnapshotRequest
	var wait bool
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Ask a running exporter for a full snapshot",
		Long: `snapshot makes a running exporter compare resources with the cluster and send every object of them again, as sync, or
as replaced or deleted where a sink did not have it so. The snapshot is owed from then on, also if the exporter is
restarted before its end. It is asked for over the loopback interface: run this on the exporter's host or in its pod.`,
		Example: `  exporter snapshot --state-dir ./state --wait
  exporter snapshot --resources pods,deployments.apps --sink bus
  kubectl exec deploy/kubecdc -- exporter snapshot --resources pods`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := t.check(cmd); err != nil {
				return err
			}
			client, err := t.client()
			if err != nil {
				return err
			}
			return requestSnapshot(cmd.Context(), client, request, wait, stdout(cmd))
		},
	}
	t.register(cmd)
	cmd.Flags().StringSliceVar(&request.Resources, "resources", nil, "resources as kubectl names them, or as they are configured (default: all)")
	cmd.Flags().StringVar(&request.Sink, "sink", "", "only this sink (default: all)")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until every sink has the whole snapshot, and print the result")
	return cmd
}

func requestSnapshot(ctx context.Context, client *control.Client, request control.SnapshotRequest, wait bool, out io.Writer) error {
	snapshot, err := client.Snapshot(ctx, request)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "a full snapshot of %s is owed to %s\n", strings.Join(snapshot.Streams, ", "), strings.Join(snapshot.Sinks, ", "))
	if !wait {
		return nil
	}
	found, err := client.Wait(ctx, snapshot)
	if ctx.Err() != nil {
		return errors.New("wait for the snapshot: stopped: it goes on without this command")
	}
	if err != nil {
		return fmt.Errorf("wait for the snapshot, which stays requested, even over a restart: %w", err)
	}
	return console.PrintReconciles(found, out)
}
