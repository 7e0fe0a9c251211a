package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubecdc/kubecdc/internal/app"
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

// TestEveryCommandHasAManPage, with its flags and examples, and the same each time.
func TestEveryCommandHasAManPage(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	dirs := []string{filepath.Join(t.TempDir(), "a", "man"), t.TempDir()}
	for _, dir := range dirs {
		root := newRootCommand()
		root.SetArgs([]string{"man", dir})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
	}
	eachCommand(newRootCommand(), func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		page, err := os.ReadFile(filepath.Join(dirs[0], name))
		if err != nil {
			t.Error(err)
			return
		}
		again, err := os.ReadFile(filepath.Join(dirs[1], name))
		if err != nil || !bytes.Equal(page, again) {
			t.Errorf("%s is another one each time, %v", name, err)
		}
		if !bytes.Contains(page, []byte("Nov 2023")) || !bytes.Contains(page, []byte("EXAMPLE")) {
			t.Errorf("%s has no date or no example", name)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if flag := "--" + f.Name; !bytes.Contains(page, []byte(flag)) && !bytes.Contains(page, []byte(strings.ReplaceAll(flag, "-", `\-`))) && !f.Hidden {
				t.Errorf("%s does not name --%s", name, f.Name)
			}
		})
	})
}

func TestManWantsADirectory(t *testing.T) {
	for _, args := range [][]string{{"man"}, {"man", t.TempDir(), "b"}} {
		root := newRootCommand()
		root.SetArgs(args)
		if err := root.Execute(); app.ExitCode(err) != app.ExitUsage {
			t.Errorf("%q ends with %v", args, err)
		}
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
