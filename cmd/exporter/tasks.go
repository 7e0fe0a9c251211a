package main

import (
	"cmp"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/observe/console"
)

func newTasksCommand() *cobra.Command {
	f, output := &flags{several: true}, ""
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "Show which exporter does which task",
		Long: `tasks reads the Leases that the exporters of a configuration with ha share, and asks no exporter.

TASK      a cluster, or one of the tasks that its resources are spread over
EXPORTER  the host, or the pod, that does it
SINCE     when it began
LEASE     which says so, as namespace/name
NOTE      why nobody does it, or why nobody may`,
		Example: `  exporter tasks -f config.yaml
  exporter tasks -f config.yaml -o json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.load()
			if err != nil {
				return err
			}
			if cfg.HA == nil {
				return usage.Errorf("ha is missing: the exporters of this configuration share nothing")
			}
			all, err := task.Owners(cmd.Context(), f.access, cfg)
			if err != nil || output == "json" {
				return cmp.Or(err, console.PrintJSON(all, stdout(cmd)))
			}
			rows := [][]any{{"TASK", "EXPORTER", "SINCE", "LEASE", "NOTE"}}
			for _, t := range all {
				since := ""
				if !t.Since.IsZero() {
					since = t.Since.UTC().Format(time.RFC3339)
				}
				rows = append(rows, []any{t.Task, cmp.Or(t.Exporter, "-"), cmp.Or(since, "-"), t.Lease, t.Note})
			}
			return console.PrintTable(stdout(cmd), rows)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}
