// Package harness runs a benchmark: the parties in processes of their own, so that the CPU time and the memory of each
// are its own, and the figures one a line.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// childCommand is the first argument of a child process; its role is the second.
const childCommand = "child"

// Role is what a child process does: the work that its spec asks for, until that is done or ctx ends. Each reply is a
// JSON value for the parent.
type Role func(ctx context.Context, spec json.RawMessage, reply func(any) error) error

// Main runs the role that the command line names or, in the first process, the benchmark. It returns an exit code.
func Main(roles map[string]Role, benchmark func(ctx context.Context, args []string) error) int {
	run := func(ctx context.Context) error { return benchmark(ctx, os.Args[1:]) }
	if len(os.Args) == 3 && os.Args[1] == childCommand {
		run = func(ctx context.Context) error { return beChild(ctx, roles[os.Args[2]]) }
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		return 1
	}
	return 0
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
