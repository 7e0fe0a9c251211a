package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// NATS is a nats-server in a process of its own, with its streams on disk.
type NATS struct {
	URL string
	cmd *exec.Cmd
}

// StartNATS builds nats-server, of the version that the module requires, into the directory, and starts it there. Kill
// ends it.
func StartNATS(ctx context.Context, dir string) (*NATS, error) {
	binary := filepath.Join(dir, "nats-server")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/nats-io/nats-server/v2")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build nats-server: %w: %s", err, out)
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(address)
	n := &NATS{URL: "nats://" + address}
	n.cmd = exec.Command(binary, "--addr", host, "--port", port, "--jetstream", "--store_dir", filepath.Join(dir, "jetstream"),
		"--log", filepath.Join(dir, "nats-server.log"))
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	if err := awaitListener(ctx, address); err != nil {
		n.Kill()
		return nil, fmt.Errorf("start nats-server: %w", err)
	}
	return n, nil
}

// Usage is what it has used until now.
func (n *NATS) Usage() (Usage, error) { return UsageOf(n.cmd.Process.Pid) }

// Kill ends it as a crash does.
func (n *NATS) Kill() {
	_ = n.cmd.Process.Kill() // it has ended
	_ = n.cmd.Wait()         // it says that it was killed
}

// freeAddress is one on loopback where nobody listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), listener.Close()
}

// awaitListener waits until somebody listens there.
func awaitListener(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("nobody listens after 30 s"))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp4", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Pause makes it answer nobody, as a machine that hangs, until Resume.
func (n *NATS) Pause() error { return n.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (n *NATS) Resume() error { return n.cmd.Process.Signal(syscall.SIGCONT) }
