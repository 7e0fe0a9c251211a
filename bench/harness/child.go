// Package harness runs a benchmark: the parties in processes of their own, so that the CPU time and the memory of each
// are its own, and the figures one a line.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
)

// childCommand is the first argument of a child process; its role is the second, and that role's argument the third.
const childCommand = "child"

// Role is what a child process does. It replies once, with a JSON value for the parent, which kills it later.
type Role func(ctx context.Context, argument string, reply func(any) error) error

// Benchmark is what a command measures.
type Benchmark struct {
	Name  string
	Limit time.Duration       // the longest that it may take
	Flags func(*flag.FlagSet) // declares those of the command line; nil is none
	Roles map[string]Role     // of its child processes
	// Run measures. Its figures are printed also where it returns an error, such as that one of them is beyond a bound.
	Run func(ctx context.Context) ([]Figure, error)
}

// Main runs the role that the command line names or, in the first process, the benchmark. It ends the process where
// that fails.
func Main(b Benchmark) {
	if err := b.main(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func (b *Benchmark) main(ctx context.Context, args []string) error {
	if len(args) == 3 && args[0] == childCommand {
		if err := b.Roles[args[1]](ctx, args[2], json.NewEncoder(os.Stdout).Encode); err != nil {
			return err
		}
		select {} // its end would close the pipe of its reply
	}
	flags := flag.NewFlagSet(b.Name, flag.ExitOnError)
	if b.Flags != nil {
		b.Flags(flags)
	}
	_ = flags.Parse(args) // it exits on an error
	ctx, cancel := context.WithTimeout(ctx, b.Limit)
	defer cancel()
	figures, err := b.Run(ctx)
	return errors.Join(Print(os.Stdout, figures), err)
}

// Start starts this program as a child in the role, and waits for its reply. The end of ctx kills it.
func Start(ctx context.Context, role, argument string, reply any) (*child.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the own binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, childCommand, role, argument)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("connect %s: %w", role, err)
	}
	process, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	if err := json.NewDecoder(out).Decode(reply); err != nil {
		process.Kill()
		return nil, fmt.Errorf("read the reply of %s: %w", role, err)
	}
	return process, nil
}
