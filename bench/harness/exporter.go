package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/test/child"
)

// Build builds the product as it is in the image, and returns the binary's path. It stays there for the next benchmark,
// for which it is not linked again unless the code has changed.
func Build(ctx context.Context) (string, error) {
	return buildInto(ctx, ".", "exporter", "-tags", "noembedded", "./cmd/exporter")
}

// BuildIn builds the program of a directory, also of another module, and returns the binary's path.
func BuildIn(ctx context.Context, dir, name string) (string, error) {
	return buildInto(ctx, dir, name, ".")
}

func buildInto(ctx context.Context, dir, name string, args ...string) (string, error) {
	binary, err := filepath.Abs(filepath.Join("bin/bench", name))
	if err != nil {
		return "", fmt.Errorf("find the directory of binaries: %w", err)
	}
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-ldflags", "-s -w", "-o", binary}, args...)...)
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	return binary, nil
}

// Exporter is a running exporter.
type Exporter struct {
	Began   time.Time // just before the exec
	state   string
	process *child.Process
	log     bytes.Buffer
}

// StartExporter runs "exporter run" with the state and the arguments. Kill or Stop must be called.
func StartExporter(binary, state string, args ...string) (*Exporter, error) {
	args = append([]string{"run", "--state-dir", state, "--listen", "127.0.0.1:0"}, args...)
	e, cmd := &Exporter{state: state}, exec.Command(binary, args...)
	cmd.Stderr = &e.log
	e.Began = time.Now()
	var err error
	if e.process, err = child.Start(cmd); err != nil {
		return nil, fmt.Errorf("start the exporter: %w", err)
	}
	return e, nil
}

// Usage is what the exporter has used until now. It works until Stop.
func (e *Exporter) Usage() (Usage, error) { return UsageOf(e.process.Cmd.Process.Pid) }

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
		case <-e.process.Exited:
			return fmt.Errorf("the exporter ended: %w: %s", e.process.Ended(), e.log.String())
		case <-ctx.Done():
			e.Kill()
			return fmt.Errorf("wait for the exporter: %w: %s", context.Cause(ctx), e.log.String())
		}
	}
}

// Pass lets the time pass.
func (e *Exporter) Pass(ctx context.Context, span time.Duration) error {
	until := time.Now().Add(span)
	return e.Await(ctx, 100*time.Millisecond, func() (bool, error) { return time.Now().After(until), nil })
}

// Status reads what matters of /statusz. It fails where the exporter does not answer yet.
func (e *Exporter) Status(ctx context.Context, into any) error {
	text, err := os.ReadFile(filepath.Join(e.state, "address")) // and the process id
	if err != nil {
		return fmt.Errorf("read where the exporter listens: %w", err)
	}
	address, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/statusz", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return errors.Join(json.NewDecoder(answer.Body).Decode(into), answer.Body.Close())
}

// Records is how many records each sink holds at least, as the exporter says; 0 where it does not answer yet.
func (e *Exporter) Records(ctx context.Context) int {
	var status struct {
		Sinks map[string]struct{ Records int }
	}
	least := -1
	if err := e.Status(ctx, &status); err == nil {
		for _, sink := range status.Sinks {
			if least < 0 || sink.Records < least {
				least = sink.Records
			}
		}
	}
	return max(least, 0)
}

// AwaitRecords returns when every sink holds so many.
func (e *Exporter) AwaitRecords(ctx context.Context, records int) error {
	return e.Await(ctx, 100*time.Millisecond, func() (bool, error) { return e.Records(ctx) >= records, nil })
}

// Stop ends the exporter as Kubernetes does, and returns what it used until its end.
func (e *Exporter) Stop() (Usage, error) {
	usage, err := e.Usage()
	if err = errors.Join(err, e.process.Terminate(time.Minute), e.process.Err); err != nil {
		return usage, fmt.Errorf("stop the exporter: %w: %s", err, e.log.String())
	}
	state := e.process.Cmd.ProcessState
	usage.CPU = state.UserTime() + state.SystemTime()
	return usage, nil
}

// Kill ends the exporter as a crash does. It does nothing to one that has ended.
func (e *Exporter) Kill() { e.process.Kill() }
