package source

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestLoginInTheServerURLIsNeverPrinted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	const text = `{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"k","cluster":{"server":"https://joe:s3cret@127.0.0.1:6443"}}],
		"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"users":[{"name":"u","user":{}}]}`
	must(t, os.WriteFile(file, []byte(text), 0o600))
	config, name, err := LoadKubeconfig(file, "")
	if err != nil || name != "c" {
		t.Fatalf("context %q, %v", name, err)
	}
	if config.Host != "https://127.0.0.1:6443" || config.Username != "joe" || config.Password != "s3cret" {
		t.Errorf("host is %q, login %q %q", config.Host, config.Username, config.Password)
	}
}

// TestServerThatIsNoAPIServerIsSaidToBeNone: nobody reads the page's markup instead.
func TestServerThatIsNoAPIServerIsSaidToBeNone(t *testing.T) {
	const page = "<!DOCTYPE html><html><body>Welcome</body></html>"
	const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"Forbidden","code":403}`
	for _, c := range []struct {
		code             int
		kind, body, want string
	}{
		{200, "text/html; charset=utf-8", page, "answers with a web page, not as a Kubernetes API server"},
		{200, "text/plain", "ok", "answers with text/plain, not as a Kubernetes API server"},
		{403, "text/html", page, "answers with a web page (status 403), not as a Kubernetes API server"},
		{404, "text/html", page, "answers with a web page (status 404), not as a Kubernetes API server"},
		{502, "text/html", "\n" + page, "answers with a web page (status 502), not as a Kubernetes API server"},
		{401, "text/html", page, "refuses the credentials"},
		{403, "application/json", status, "forbids a request: no: bind a role"},
		{503, "text/plain", "etcd is gone", "unable to handle the request"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.WriteHeader(c.code)
			io.WriteString(w, c.body)
		}))
		_, err := ClusterUID(t.Context(), &rest.Config{Host: server.URL})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "<html>") {
			t.Errorf("%d %s: %v, want %s", c.code, c.kind, err, c.want)
		}
		server.Close()
	}
}
