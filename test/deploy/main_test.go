package deploy

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/kubecdc/kubecdc/test/program"
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

// table is a file of testdata.
func table[T any](t *testing.T, file string) (all []T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, "test", "deploy", "testdata", file)), &all); err != nil || len(all) == 0 {
		t.Fatalf("%s has %d entries: %v", file, len(all), err)
	}
	return all
}

// patience is for what another process does, on a machine that is busy.
const patience = time.Minute

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	program.Eventually(t, patience, what, holds)
}
