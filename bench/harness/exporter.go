package harness

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Build builds the product as it is in the image, and returns the binary's path. It stays there for the next benchmark,
// for which it is not linked again unless the code has changed.
func Build(ctx context.Context) (string, error) {
	binary, err := filepath.Abs("bin/bench/exporter")
	if err != nil {
		return "", fmt.Errorf("find the directory of the exporter's binary: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-tags", "noembedded", "-ldflags", "-s -w", "-o", binary, "./cmd/exporter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the exporter: %w: %s", err, out)
	}
	return binary, nil
}

// Kubeconfig writes a kubeconfig whose only context, "bench", is the server, and returns its path.
func Kubeconfig(dir, server string, ca []byte) (string, error) {
	file := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: bench
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
clusters: [{name: bench, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: bench, user: {}}]
`, server, base64.StdEncoding.EncodeToString(ca))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the kubeconfig: %w", err)
	}
	return file, nil
}

// Exporter is a running exporter.
type Exporter struct {
	Began time.Time // just before the exec
	cmd   *exec.Cmd
	log   bytes.Buffer
	ended chan struct{} // closed when it has ended
	err   error         // of the end
}

// StartExporter runs "exporter run" with the arguments. Wait or Stop must be called.
func StartExporter(binary string, args ...string) (*Exporter, error) {
	e := &Exporter{cmd: exec.Command(binary, append([]string{"run"}, args...)...), ended: make(chan struct{})}
	e.cmd.Stderr = &e.log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e.Began = time.Now()
	if err := e.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the exporter: %w", err)
	}
	go func() {
		defer close(e.ended)
		e.err = e.cmd.Wait()
	}()
	return e, nil
}

// Usage is what the exporter has used until now. It works until Stop.
func (e *Exporter) Usage() (Usage, error) { return UsageOf(e.cmd.Process.Pid) }

// Await returns when reached says so, which is asked as often as every says, or with an error when the exporter ends or
// ctx does.
func (e *Exporter) Await(ctx context.Context, every time.Duration, reached func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if ok, err := reached(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-e.ended:
			return fmt.Errorf("the exporter ended: %w: %s", e.err, e.log.String())
		case <-ctx.Done():
			return fmt.Errorf("wait for the exporter: %w: %s", context.Cause(ctx), e.tail())
		}
	}
}

// tail kills the exporter, and returns its log.
func (e *Exporter) tail() string {
	e.Kill()
	return e.Log()
}

// Log is what an exporter has logged that has ended.
func (e *Exporter) Log() string { return e.log.String() }

// Stop ends the exporter as Kubernetes does, and returns what it used until its end.
func (e *Exporter) Stop() (Usage, error) {
	usage, err := e.Usage()
	if err := errors.Join(err, e.cmd.Process.Signal(syscall.SIGTERM)); err != nil {
		return usage, fmt.Errorf("stop the exporter: %w", err)
	}
	<-e.ended
	if e.err != nil {
		return usage, fmt.Errorf("stop the exporter: %w: %s", e.err, e.log.String())
	}
	usage.CPU = e.cmd.ProcessState.UserTime() + e.cmd.ProcessState.SystemTime()
	return usage, nil
}

// Kill ends the exporter as a crash does. It does nothing to one that has ended.
func (e *Exporter) Kill() {
	_ = e.cmd.Process.Kill() // it has ended
	<-e.ended
}
