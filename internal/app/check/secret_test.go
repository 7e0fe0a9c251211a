package check

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/observe/console"
)

// A cluster whose kubeconfig is in a Secret is reached by that, and not as kubectl would reach one.
func TestCheckReachesAClusterByItsSecret(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	dir := t.TempDir()
	home := filepath.Join(dir, "kubeconfig")
	must(t, os.WriteFile(home, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '"+server.URL+
		"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"), 0o600))
	t.Setenv("KUBECONFIG", home)
	cfg, err := config.Parse("config.yaml", []byte("clusters: [{name: eu, secret: kubecdc/eu}]\nresources: [pods]\nlisten: '127.0.0.1:0'\nstate: {dir: "+dir+
		"/state}\nsinks: [{name: out, file: {path: '"+dir+"/{cluster}.ndjson'}}]\n"), os.LookupEnv)
	must(t, err)
	var out bytes.Buffer
	err = Run(t.Context(), cluster.Access{}, cfg, &console.Findings{Out: &out})
	if told := out.String(); err == nil || !strings.Contains(told, "Secret kubecdc/eu") {
		t.Errorf("told %s", told)
	}
}
