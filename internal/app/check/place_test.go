package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/test/script"
)

// TestCheckFindsSinksOnOnePlace, whatever their names for it, and streams of one server that would have one subject.
func TestCheckFindsSinksOnOnePlace(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink(dir, filepath.Join(dir, "link")))
	must(t, os.WriteFile(filepath.Join(dir, "out.ndjson"), nil, 0o600))
	script.Run(t, "testdata/places.txt", func(text string) string {
		text = "cluster: c\nresources: [{resource: pods}]\nsinks:\n" + strings.ReplaceAll(text, "DIR", dir)
		cfg, err := config.Parse("config.yaml", []byte(text), os.LookupEnv)
		must(t, err)
		var out bytes.Buffer
		r := console.Findings{Out: &out}
		checkPlaces(cfg, &cluster.Cluster{Name: "c"}, &r)
		if err := r.End(); err != nil && !usage.Is(err) {
			t.Errorf("%v is no mistake of the user's", err)
		}
		return strings.ReplaceAll(out.String(), dir, "DIR")
	})
}
