package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/kubecdc/kubecdc/internal/usage"
)

// newManCommand is for who packages the program.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a man page for each command into a directory",
		Long:    "man writes a man page for each command into the directory, which is created if it is missing. The pages have the date of SOURCE_DATE_EPOCH, if it is set.",
		Example: "  exporter man dist/man && man -l dist/man/exporter-run.1",
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage.Errorf("the directory is missing: see %s --help", cmd.CommandPath())
			}
			if len(args) > 1 {
				return noArguments(cmd, args[1:])
			}
			return writeMan(cmd.Root(), args[0])
		},
	}
}

func writeMan(root *cobra.Command, dir string) error {
	date, err := buildDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return usage.Wrap(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory %s: %w", dir, err)
	}
	root.DisableAutoGenTag = true // the same source makes the same pages
	header := &doc.GenManHeader{Title: "EXPORTER", Section: "1", Date: &date, Source: "kubecdc " + version, Manual: "kubecdc"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("write man pages into %s: %w", dir, err)
	}
	return nil
}

// buildDate is the time in the pages (reproducible-builds.org, SOURCE_DATE_EPOCH).
func buildDate(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Now(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: want seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
