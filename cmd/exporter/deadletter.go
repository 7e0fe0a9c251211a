package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/sink/deadletter"
)

func newDeadLetterCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "deadletter",
		Short: "List, show and resend records that sinks refused for good",
		Long: `deadletter is about the records that a sink will never take, such as objects above a broker's size limit. Each is kept
whole in a file of its own, and a gap record with its id stands for it in the sink. A file may be deleted by hand.`,
		Example: `  exporter deadletter list --state-dir ./state
  exporter deadletter replay --state-dir ./state --sink bus`,
	}, newDeadLetterListCommand(), newDeadLetterShowCommand(), newDeadLetterReplayCommand())
}

// letterQuery says which letters a command reads.
type letterQuery struct {
	deadletter.Query
	stateDir string
}

func (s *letterQuery) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.stateDir, "state-dir", defaultStateDir, "state directory of the exporter, with deadletters in it")
	cmd.Flags().StringVar(&s.Dir, "dir", "", "directory of the letters, instead of --state-dir, where deadLetter.dir is configured")
	cmd.Flags().StringVar(&s.Sink, "sink", "", "only letters of this sink (default: all)")
	cmd.Flags().StringSliceVar(&s.IDs, "id", nil, "id of a letter; may be repeated (default: all)")
}

func (s *letterQuery) check() error {
	if s.Dir != "" {
		return nil // made for the first letter
	}
	if _, err := os.Stat(s.stateDir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open state %s: there is no state: check the path, or start the exporter once", s.stateDir)
	}
	s.Dir = deadletter.DirOf(s.stateDir)
	return nil
}

func newDeadLetterListCommand() *cobra.Command {
	var s letterQuery
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List letters, the oldest of each sink first",
		Example: `  exporter deadletter list --state-dir ./state --sink bus
  exporter deadletter list --state-dir ./state -o json | jq -r 'select(.reason == "too_large").id'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return err
			}
			n, err := console.PrintLetters(s.Heads(), output == "json", stdout(cmd))
			if err == nil && n == 0 {
				fmt.Fprintln(stderr(cmd), "no dead letters")
			}
			return err
		},
	}
	s.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, or json: one letter per line, without its value")
	return cmd
}

func newDeadLetterShowCommand() *cobra.Command {
	var s letterQuery
	cmd := &cobra.Command{
		Use:     "show [ID...]",
		Short:   "Print letters whole, as JSON",
		Long:    "show prints letters whole, as JSON. It shows values of Secrets only as keyed hashes; the letters' files have the others.",
		Example: `  exporter deadletter show --state-dir ./state 00112233445566778899 | jq .value.data`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			s.IDs = append(s.IDs, ids...)
			if err := s.check(); err != nil {
				return err
			}
			n := 0
			for letter, err := range s.Whole() {
				if err != nil {
					return err
				}
				if err := console.PrintLetter(letter, stdout(cmd)); err != nil {
					return fmt.Errorf("write dead letter %s: %w", letter.ID, err)
				}
				n++
			}
			switch {
			case n > 0:
				return nil
			case len(s.IDs) > 0:
				return fmt.Errorf("no dead letter %s in %s: see exporter deadletter list", deadletter.Quoted(s.IDs), s.Dir)
			}
			return fmt.Errorf("no dead letters in %s", s.Dir)
		},
	}
	s.register(cmd)
	return cmd
}

func newDeadLetterReplayCommand() *cobra.Command {
	var t target
	var request control.ReplayRequest
	cmd := &cobra.Command{
		Use:   "replay [ID...]",
		Short: "Make a running exporter send letters to their sinks again",
		Long: `replay makes a running exporter send letters to their sinks again, marked as replayed, and removes those that the sink
holds then. It is asked for over the loopback interface: run this on the exporter's host or in its pod.

A letter is sent if it tells how its object still is. Behind something newer it would make those who keep states go back
in time, so one that is superseded is kept, unless --force says otherwise; it is marked as history then.

Without --sink and an ID everything is sent. The exit code is 1 where a letter is kept.`,
		Example: `  exporter deadletter replay --state-dir ./state
  exporter deadletter replay --sink bus 00112233445566778899 --force`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			request.IDs = append(request.IDs, ids...)
			client, err := t.client()
			if err != nil {
				return err
			}
			replayed, err := client.Replay(cmd.Context(), request)
			switch {
			case cmd.Context().Err() != nil:
				return errors.New("wait for the letters: stopped: the letter on its way is sent without this command")
			case err != nil:
				return err
			case len(replayed.Letters) == 0:
				fmt.Fprintln(stderr(cmd), "no dead letters")
				return nil
			}
			kept, err := console.PrintReplayed(replayed, stdout(cmd))
			if err != nil {
				return fmt.Errorf("write the results: %w", err)
			}
			if kept > 0 {
				return fmt.Errorf("%d of %d letters are kept", kept, len(replayed.Letters))
			}
			return nil
		},
	}
	t.register(cmd)
	cmd.Flags().StringVar(&request.Sink, "sink", "", "send only letters of this sink (default: all)")
	cmd.Flags().StringSliceVar(&request.IDs, "id", nil, "id of a letter; may be repeated (default: all)")
	cmd.Flags().BoolVar(&request.Force, "force", false, "also send superseded letters, marked as history")
	return cmd
}
