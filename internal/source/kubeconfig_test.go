package source

import (
	"fmt"
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
		client, err := NewClient(&rest.Config{Host: server.URL}, 0)
		must(t, err)
		_, err = client.ClusterUID(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "<html>") {
			t.Errorf("%d %s: %v, want %s", c.code, c.kind, err, c.want)
		}
		server.Close()
	}
}

// TestASecretsKubeconfigIsWholeInItself: it runs nothing here, and reads no file of this host, whoever wrote it.
func TestASecretsKubeconfigIsWholeInItself(t *testing.T) {
	const form = `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"k","cluster":{"server":"https://h"%s}}],` +
		`"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"users":[{"name":"u","user":{%s}}]}`
	for _, c := range []struct{ cluster, user, context, want string }{
		{"", `"token":"t"`, "", ""},
		{"", `"token":"t"`, "d", "load the kubeconfig: it has no context \"d\": set --context to one of c"},
		{"", `"tokenFile":"/t"`, "", "load the kubeconfig in Secret n/s: its user \"u\" has a command or a file: put the token, or the certificate and its key, into it"},
		{"", `"client-key":"/k"`, "", "its user \"u\" has a command or a file"},
		{"", `"client-certificate":"/c"`, "", "its user \"u\" has a command or a file"},
		{"", `"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"sh"}`, "", "its user \"u\" has a command or a file"},
		{"", `"auth-provider":{"name":"gcp"}`, "", "its user \"u\" has a command or a file"},
		{`,"certificate-authority":"/c"`, "", "", "its cluster \"k\" has a file: put it into certificate-authority-data"},
	} {
		config, name, err := LoadSecret("n/s", fmt.Appendf(nil, form, c.cluster, c.user), c.context)
		if c.want == "" && (err != nil || name != "c" || config.Host != "https://h" || config.BearerToken != "t") {
			t.Errorf("%s: %v, %q, %v", c.user, config, name, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s%s: %v, want %s", c.cluster, c.user, err, c.want)
		}
	}
	if _, _, err := LoadSecret("n/s", []byte("{"), ""); err == nil || !strings.Contains(err.Error(), "load the kubeconfig in Secret n/s: ") {
		t.Errorf("what is none: %v", err)
	}
}

// TestAKubeconfigIsInOneOfTwoKeys of a Secret.
func TestAKubeconfigIsInOneOfTwoKeys(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":{"kubeconfig":"YQ==","value":"Yg=="}}`: "a",
		`{"data":{"value":"Yg=="}}`:                     "b",
		`{"data":{"other":"Yg=="}}`:                     "it has neither of the keys kubeconfig and value: put it into one of them",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/api/v1/namespaces/n/secrets/s" {
				io.WriteString(w, body)
			}
		}))
		text, err := ReadSecret(t.Context(), &rest.Config{Host: server.URL}, "n/s")
		if got := string(text); got != want && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v, want %s", body, got, err, want)
		}
		server.Close()
	}
}
