package badinput

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/validate"
)

// running is an exporter that goes on until it is stopped.
type running struct {
	t      *testing.T
	desk   *desk
	cmd    *exec.Cmd
	out    *output // standard output and standard error
	exited chan error
}

// start starts the exporter. It ends with the test at the latest.
func (d *desk) start(args ...string) *running {
	d.t.Helper()
	r := &running{t: d.t, desk: d, cmd: d.command(context.Background(), args), out: newOutput(), exited: make(chan error, 1)}
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.out
	if err := r.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() { r.exited <- r.cmd.Wait(); close(r.exited) }()
	d.t.Cleanup(func() {
		r.cmd.Process.Kill()
		<-r.exited
		d.showsNoSecret(r.out.String())
	})
	return r
}

// logs waits for a line with the text and returns it.
func (r *running) logs(text string) string {
	r.t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	for {
		line, changed := r.out.find(text)
		if line != "" {
			return line
		}
		select {
		case <-changed:
		case err := <-r.exited:
			r.t.Fatalf("ended (%v) without %q:\n%s", err, text, r.out)
		case <-deadline.C:
			r.t.Fatalf("no %q:\n%s", text, r.out)
		}
	}
}

// times is how many lines have the text.
func (r *running) times(text string) int { return strings.Count(r.out.String(), text) }

// stop sends SIGTERM and returns the exit code.
func (r *running) stop() int {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	select {
	case err := <-r.exited:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			r.t.Fatal(err)
		}
		return r.cmd.ProcessState.ExitCode()
	case <-time.After(limit):
		r.t.Fatalf("still running %s after SIGTERM:\n%s", limit, r.out)
		return -1
	}
}

// stopsWell stops the exporter, which must have delivered everything.
func (r *running) stopsWell() {
	r.t.Helper()
	if code := r.stop(); code != 0 {
		r.t.Errorf("exit code %d:\n%s", code, r.out)
	}
}

// get reads a page of the status server.
func (r *running) get(path string) string {
	r.t.Helper()
	_, address, _ := strings.Cut(r.logs("serving metrics and status"), "address=")
	response, err := http.Get("http://" + strings.TrimSpace(address) + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	r.desk.showsNoSecret(string(body))
	return string(body)
}

// status is what these tests read of /statusz.
type status struct {
	Streams map[string]struct{ State, LastError, ResourceVersion string }
	Sinks   map[string]struct {
		State, LastError string
		Asking           *struct{ Followed, Refused int }
	}
	State struct{ LastError string }
}

func (r *running) status() status {
	r.t.Helper()
	var s status
	text := []byte(r.get("/statusz"))
	if err := errors.Join(validate.Status(text), json.Unmarshal(text, &s)); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// eventually asks again and again, for what nobody gives a sign of.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline, ticker := time.NewTimer(limit), time.NewTicker(50*time.Millisecond)
	defer deadline.Stop()
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("never: %s", what)
		}
	}
}

// output keeps what a process writes, and tells when there is more.
type output struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed and made anew with each write
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// find returns the first whole line with the text, "" where there is none yet, and what tells of the next write.
func (o *output) find(text string) (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for line := range strings.Lines(o.text.String()) {
		if strings.HasSuffix(line, "\n") && strings.Contains(line, text) {
			return strings.TrimSuffix(line, "\n"), o.changed
		}
	}
	return "", o.changed
}

// contextOfCleanup is for requests that a test's end must not cancel.
func contextOfCleanup(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }
