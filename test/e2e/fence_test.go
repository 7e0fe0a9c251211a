package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestI10AnOlderExporterIsFenced: two exporters on copies of one state write to one stream. The one that was held up
// while the other took over ends, and nothing is lost or doubled.
func TestI10AnOlderExporterIsFenced(t *testing.T) {
	r := newRig(t, nil)
	r.summon()
	r.writer.populate(t)
	r.exporter.start(t)
	r.await(r.writer.finish(t)...)
	r.exporter.stop(t)
	older := r.copied(t)
	older.start(t)
	r.writer.change(t, 5)
	r.stream.awaitObjects(t, older, r.writer.finish(t)...) // since it was opened, it has written
	older.signal(t, syscall.SIGSTOP)
	r.exporter.start(t)
	r.writer.change(t, 5)
	r.await(r.writer.finish(t)...)
	older.signal(t, syscall.SIGCONT)
	r.writer.start(t)
	select {
	case <-older.process.Exited:
	case <-time.After(deliveryLimit):
		t.Fatalf("the older exporter runs beside the younger:\n%s", older.lastLines(t))
	}
	said := "another exporter writes to the stream"
	if code := older.process.Cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(older.lastLines(t), said) {
		t.Errorf("the older exporter ended with code %d, want 1 and %q:\n%s", code, said, older.lastLines(t))
	}
	r.settle()
	r.exporter.stop(t)
	r.judge(false)
}

// copied is an exporter with copies of the state and the file, for the same stream.
func (r *rig) copied(t *testing.T) *exporter {
	t.Helper()
	state, file := filepath.Join(r.dir, "older"), filepath.Join(r.dir, "older.ndjson")
	if err := os.CopyFS(state, os.DirFS(filepath.Join(r.dir, "state"))); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.path())
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	x := *r.exporter
	x.process, x.logPath = nil, x.logPath+".older"
	x.args = append(slices.Clone(x.args), "--state-dir", state, "--listen", fmt.Sprintf("127.0.0.1:%d", freePort(t)))
	x.sinks = []string{x.sinks[0], "file://" + file}
	return &x
}
