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
// while the other took over stops that sink, and nothing is lost or doubled.
func TestI10AnOlderExporterIsFenced(t *testing.T) {
	r := newRig(t)
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
	older.awaitLine(t, "another exporter writes to the stream")
	r.settle()
	r.exporter.stop(t)
	r.judge(false)
}

// awaitLine waits until the exporter has logged the text.
func (x *exporter) awaitLine(t *testing.T, text string) {
	t.Helper()
	limit, look := time.After(deliveryLimit), time.NewTicker(100*time.Millisecond)
	defer look.Stop()
	for !strings.Contains(x.lastLines(t), text) {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("the exporter does not say %q:\n%s", text, x.lastLines(t))
		}
	}
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
