package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/console"
)

func newInventoryCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "inventory",
		Short: "Look up which objects the sinks have, and in which version",
		Long: `inventory shows what the saved state knows of the objects that were delivered: their names, uids and resourceVersions,
never the objects themselves. It asks a running exporter, and reads the state of a stopped one.`,
		Example: `  exporter inventory list --resources pods -n shop
  exporter inventory get --resources configmaps -n shop settings`,
	}, newInventoryListCommand(), newInventoryGetCommand())
}

// lookup is what list and get have in common.
type lookup struct {
	target
	resources []string
	query     control.Query
	output    string
}

func (l *lookup) register(cmd *cobra.Command) {
	l.target.register(cmd)
	cmd.Flags().StringSliceVar(&l.resources, "resources", nil, "resources as kubectl names them, or streams (default: all)")
	cmd.Flags().StringVarP(&l.query.Namespace, "namespace", "n", "", "namespace (default: all)")
	cmd.Flags().StringVar(&l.query.Sink, "sink", "", "sink that has the objects (default: every sink)")
	cmd.Flags().StringVar(&l.query.UID, "uid", "", "metadata.uid of the object")
	cmd.Flags().StringVarP(&l.output, "output", "o", "table", "table, or json: one object per line")
}

func newInventoryListCommand() *cobra.Command {
	var l lookup
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List objects in the order of their keys",
		Example: `  exporter inventory list --state-dir ./state --resources pods -n shop
  exporter inventory list --state-dir ./state -o json | jq -r .uid`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := l.print(cmd.Context(), stdout(cmd))
			if err == nil && n == 0 {
				fmt.Fprintln(stderr(cmd), "no objects")
			}
			return err
		},
	}
	l.register(cmd)
	return cmd
}

func newInventoryGetCommand() *cobra.Command {
	var l lookup
	cmd := &cobra.Command{
		Use:   "get [NAME]",
		Short: "Find one object by its name or its uid",
		Example: `  exporter inventory get --state-dir ./state --resources configmaps -n shop settings
  exporter inventory get --state-dir ./state --uid 5d6c3b0e-0f0a-4c6e-9a55-7a1f6c9be1f4 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return noArguments(cmd, args[1:])
			case len(args) == 0 && l.query.UID == "":
				return usage.Errorf("nothing to find: give a NAME with --resources, or --uid")
			case len(args) == 1 && len(l.resources) == 0:
				return usage.Errorf("--resources is missing: say what %q is the name of", args[0])
			case len(args) == 1:
				l.query.Name = args[0]
			}
			n, err := l.print(cmd.Context(), stdout(cmd))
			if err == nil && n == 0 {
				err = errors.New("the inventory has no such object: no sink was given it, or it is deleted")
			}
			return err
		},
	}
	l.register(cmd)
	return cmd
}

// print writes the objects as they are read, and says how many there were.
func (l *lookup) print(ctx context.Context, out io.Writer) (n int, err error) {
	if err := checkNamespaceFilter(l.query.Namespace); err != nil {
		return 0, err
	}
	l.query.Resource = strings.Join(l.resources, ",")
	objects, done, err := saved.Inventory(ctx, l.client, l.stateDir, l.query)
	if err != nil {
		return 0, err
	}
	buffered := bufio.NewWriter(out)
	defer func() { err = errors.Join(err, buffered.Flush(), done()) }()
	return console.PrintObjects(objects, l.output == "json", buffered)
}
