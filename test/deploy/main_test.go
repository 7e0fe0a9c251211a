package deploy

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// root is the project's, from here.
const root = "../.."

var shared testcluster.Shared

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // client-go tells of each connection that a stopped server leaves
	code := shared.Main(m)
	if image.dir != "" {
		os.RemoveAll(image.dir)
	}
	os.Exit(code)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// patience is for what another process does, on a machine that is busy.
const patience = time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", patience, what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
