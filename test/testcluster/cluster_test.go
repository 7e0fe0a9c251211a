package testcluster

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFailedStartShowsLog(t *testing.T) {
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{DataDir: dir, APIServerFlags: []string{"--runtime-config=nonsense/v1=true"}})
	if err == nil || !strings.Contains(err.Error(), "nonsense") || !strings.Contains(err.Error(), filepath.Join(dir, "all.log")) {
		t.Errorf("start with a wrong flag: got %v, want the reason and the log's end", err)
	}
}
