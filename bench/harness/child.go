// Package harness runs a benchmark: the parties in processes of their own, so that the CPU time and the memory of each
// are its own, and the figures one a line.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// childCommand is the first argument of a child process; its role is the second.
const childCommand = "child"

// Role is what a child process does: the work that its spec asks for, until that is done or ctx ends. Each reply is a
// JSON value for the parent.
type Role func(ctx context.Context, spec json.RawMessage, reply func(any) error) error

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
	if len(args) == 2 && args[0] == childCommand {
		return beChild(ctx, b.Roles[args[1]])
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

// beChild reads the spec from stdin. The end of stdin is the end of the parent's interest, also where that was killed.
func beChild(ctx context.Context, role Role) error {
	if role == nil {
		return errors.New("run a child: it has no such role")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := json.NewDecoder(os.Stdin)
	var spec json.RawMessage
	if err := in.Decode(&spec); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	return role(ctx, spec, json.NewEncoder(os.Stdout).Encode)
}

// Child is a child process of this one, with the same binary.
type Child struct {
	role    string
	cmd     *exec.Cmd
	stdin   io.Closer
	replies *json.Decoder
}

// Start starts a child in the role. The end of ctx kills it; Stop ends it in order.
func Start(ctx context.Context, role string, spec any) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the own binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, childCommand, role)
	cmd.Stderr = os.Stderr
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, fmt.Errorf("connect %s: %w", role, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", role, err)
	}
	child := &Child{role: role, cmd: cmd, stdin: stdin, replies: json.NewDecoder(stdout)}
	if err := json.NewEncoder(stdin).Encode(spec); err != nil {
		return nil, errors.Join(fmt.Errorf("send %s its spec: %w", role, err), child.Stop())
	}
	return child, nil
}

// Reply waits for the child's next reply.
func (c *Child) Reply(into any) error {
	if err := c.replies.Decode(into); err != nil {
		return fmt.Errorf("read the reply of %s: %w", c.role, err)
	}
	return nil
}

// Stop tells the child to end, and waits for that.
func (c *Child) Stop() error {
	c.stdin.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("stop %s: %w", c.role, err)
	}
	return nil
}

// Call runs a child for its one reply.
func Call(ctx context.Context, role string, spec, reply any) error {
	child, err := Start(ctx, role, spec)
	if err != nil {
		return err
	}
	return errors.Join(child.Reply(reply), child.Stop())
}
