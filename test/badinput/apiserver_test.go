package badinput

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMistakesThatTheClusterShows: of the kubeconfig, and of the resources, all at once. It exits with 1 where the same
// command works once the server or its credentials are mended.
func TestMistakesThatTheClusterShows(t *testing.T) {
	d := newDesk(t)
	d.write("broken", "{clusters")
	d.write("empty", "")
	d.kubeconfig("dangling", "current-context", "gone")
	d.kubeconfig("down", "server", "https://127.0.0.1:1")
	d.kubeconfig("expired", "token", password)
	d.kubeconfig("untrusted", "certificate-authority-data", "")
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Write([]byte("<!DOCTYPE html><html>Welcome</html>"))
	}))
	defer page.Close()
	d.kubeconfig("page", "server", page.URL)
	for _, p := range plays(t, "cluster.txtar", "{page}", page.URL, "{server}", d.server) {
		t.Run(p.name, func(t *testing.T) {
			d.configure(p)
			d.exporter(p.args...).fails(t, p.code(), p.want)
		})
	}
}

// TestSecretsWithoutAKubeconfigAreNamed. It exits with 1 where another try may go better.
func TestSecretsWithoutAKubeconfigAreNamed(t *testing.T) {
	d := newDesk(t)
	d.mkdir(".kube")
	text, err := os.ReadFile(d.path("kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	d.write(".kube/config", string(text))
	keep := func(name, text string) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"kubeconfig": text}}
		if _, err := admin(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	keep("broken", "{clusters")
	keep("empty", "")
	keep("command", "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}}]")
	for _, c := range []struct {
		name, want string
		code       int
	}{
		{"missing", "read the kubeconfig in Secret default/missing: " + d.server + " has none of that name: make it, or correct secret in the configuration", 1},
		{"empty", "read the kubeconfig in Secret default/empty: it has neither of the keys kubeconfig and value: put it into one of them", 1},
		{"broken", "load the kubeconfig in Secret default/broken: yaml: line 1: did not find expected ',' or '}': correct it", 2},
		{"command", `load the kubeconfig in Secret default/command: its user "u" has a command or a file: put the token, or the certificate and its key, into it`, 2},
	} {
		d.write("fleet.yaml", fmt.Sprintf("clusters: [{name: a, secret: default/%s}]\nresources: [pods]\nsinks: [{file: {path: '{cluster}'}}]\n", c.name))
		if said := d.exporter("check", "-f", "fleet.yaml", "--cluster", "a"); said.Code != c.code || !strings.Contains(said.Stdout, "problem  "+c.want+"\n") {
			t.Errorf("%s: exit code %d, want %d and %s:\n%s", c.name, said.Code, c.code, c.want, said.Stdout)
		}
	}
}

// TestStopWhileTheAPIServerIsSilent: a server that takes connections and says nothing is no reason for a kill.
func TestStopWhileTheAPIServerIsSilent(t *testing.T) {
	d := newDesk(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	d.kubeconfig("silent", "server", "https://"+listener.Addr().String())
	r := d.start(usual("--resources", "pods", "--sink", "-", "--kubeconfig", "silent")...)
	conn, err := listener.Accept() // the exporter waits for an answer now
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if code := r.stop(); code != 0 || r.out.String() != "" {
		t.Errorf("exit code %d, want 0: %s", code, r.out)
	}
}
