package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/usage"
)

func newForgetSinkCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "forget-sink NAME",
		Short: "Forget a sink: what is kept for it is given up, and if it returns it is new",
		Long: `forget-sink forgets a sink of a stopped exporter: its mark, what waits for it on disk, and which deletes it has missed
since it left the configuration or was stopped. If a sink of the name is configured later, it is new: it gets everything, and
is not told which of its objects are gone.`,
		Example: "  exporter checkpoint forget-sink archive --state-dir ./state",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage.Errorf("give the name of one sink, as exporter checkpoint show prints it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return forgetSink(cmd.Context(), *dir, args[0], stdout(cmd))
		},
	}
}

func forgetSink(ctx context.Context, dir, name string, out io.Writer) (err error) {
	if err := probe(ctx, dir); err != nil {
		return explainState(err)
	}
	store, err := checkpoint.Open(ctx, dir, checkpoint.Options{})
	if err != nil {
		return explainState(err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	known, err := store.Sinks()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(known), func(sink string) bool { return sink == name })
	if len(left) == len(known) {
		return usage.Errorf("sink %q: the state in %s has no such sink: it has %s", name, dir, strings.Join(known, ", "))
	}
	if err := store.Retain(left); err != nil {
		return err
	}
	fmt.Fprintf(out, "sink %s is forgotten\n", name)
	return nil
}
