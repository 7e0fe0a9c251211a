package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// eachCommand calls do for every command but those that cobra makes by itself.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	if name := cmd.Name(); name == "help" || name == "completion" {
		return
	}
	do(cmd)
	for _, child := range cmd.Commands() {
		eachCommand(child, do)
	}
}

func TestEveryCommandIsExplained(t *testing.T) {
	n := 0
	eachCommand(newRootCommand(), func(cmd *cobra.Command) {
		n++
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || !unicode.IsUpper(rune(cmd.Short[0])) {
			t.Errorf("%s: Short is %q: want a sentence without its full stop", path, cmd.Short)
		}
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: a line of Example is %q: want one that begins with two spaces", path, line)
			}
		}
		if !strings.Contains(cmd.Example, path) {
			t.Errorf("%s: Example does not show it: %q", path, cmd.Example)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s is not described", path, f.Name)
			}
		})
	})
	if n < 12 {
		t.Errorf("%d commands were looked at", n)
	}
}

// TestEveryShellHasACompletion that knows the commands.
func TestEveryShellHasACompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		root, out := newRootCommand(), new(bytes.Buffer)
		root.SetOut(out)
		root.SetArgs([]string{"completion", shell})
		if err := root.Execute(); err != nil || out.Len() < 1000 || !strings.Contains(out.String(), "exporter") {
			t.Errorf("the completion of %s has %d bytes, %v", shell, out.Len(), err)
		}
	}
	root, out := newRootCommand(), new(bytes.Buffer)
	root.SetOut(out)
	root.SetErr(io.Discard)
	root.SetArgs([]string{"__complete", "ver"})
	if err := root.Execute(); err != nil || !strings.Contains(out.String(), "verify\tCompare") || !strings.Contains(out.String(), "version\t") {
		t.Errorf("ver completes to %q, %v", out.String(), err)
	}
}
