package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/usage"
)

// version is set by the linker.
var version = "devel"

// onlyCommands makes a command that is nothing without one of its own commands say so.
func onlyCommands(cmd *cobra.Command) {
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SuggestionsMinimumDistance = 2
}

// nearFlag suggests a flag where an unknown one was given.
func nearFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := config.Closest(unknown.GetSpecifiedName(), names); near != "" {
		return "did you mean --" + near + "? "
	}
	return ""
}

// formerName gives a flag its present name: --resources was --resource where it chooses.
func formerName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "resource" {
		name = "resources"
	}
	return pflag.NormalizedName(name)
}

// noArguments refuses what is neither a flag nor a command.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unexpected argument %q: ", withoutLogin(args[0]))
	if cmd.HasAvailableSubCommands() {
		text = fmt.Sprintf("unknown command %q: ", withoutLogin(args[0]))
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			text += fmt.Sprintf("did you mean %s? ", strings.Join(near, " or "))
		}
	}
	return usage.Wrap(errors.New(text + "see " + cmd.CommandPath() + " --help"))
}

// withoutLogin hides what may be the password of a URL that was put in the wrong place.
func withoutLogin(text string) string {
	if at := strings.LastIndex(text, "@"); at >= 0 {
		return "…" + text[at:]
	}
	return text
}
