package testcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	events     = "/api/v1/namespaces/default/events"
	kubeSystem = "/api/v1/namespaces/kube-system"
)

func TestSplitClusterSurvivesKillsAndExpiresHistory(t *testing.T) {
	c := New(t, Options{SplitProcesses: true, CompactionInterval: -1})
	api := connect(t, c.RESTConfig())
	uid := api.get(kubeSystem).Metadata.UID
	created := api.create(configMaps, `{"metadata":{"name":"kept"},"data":{"k":"v"}}`)
	old := created.Metadata.ResourceVersion
	// Without a newer write, a restarted API server could still start at old.
	api.create(configMaps, `{"metadata":{"name":"newer"}}`)

	c.KillAPIServer()
	if err := api.dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("connection to a killed API server: got %v, want it refused", err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := api.get(configMaps + "/kept"); got != created {
		t.Errorf("after kill of the API server: got %+v, want %+v", got, created)
	}

	c.KillEtcd()
	if err := c.StartEtcd(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := api.get(configMaps + "/kept"); got != created {
		t.Errorf("after kill of etcd: got %+v, want %+v", got, created)
	}
	if got := api.get(kubeSystem).Metadata.UID; got != uid {
		t.Errorf("uid of kube-system: got %s, want %s: it is another cluster", got, uid)
	}

	// Etcd answers for events itself, so that only compaction can expire them.
	api.create(events, `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}`)
	if got := api.firstFrame(events, old); got.Type != "ADDED" {
		t.Errorf("watch from %s before compaction: got %+v, want ADDED", old, got)
	}
	revision, err := c.Compact(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before, err := strconv.ParseInt(old, 10, 64); err != nil || revision <= before {
		t.Errorf("compacted at %d, want more than %s", revision, old)
	}
	for _, path := range []string{events, configMaps} {
		if got := api.firstFrame(path, old); got.Type != "ERROR" || got.Object.Code != http.StatusGone {
			t.Errorf("watch of %s from %s after compaction: got %+v, want an error 410", path, old, got)
		}
	}

	began := time.Now()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stop took %s", time.Since(began))
	if _, err := os.Stat(c.DataDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("temporary data directory after stop: %v, want it gone", err)
	}
}

func TestOneProcessContinuesItsDataDirectory(t *testing.T) {
	dir := t.TempDir()
	c := New(t, Options{DataDir: dir})
	created := connect(t, c.RESTConfig()).create(configMaps, `{"metadata":{"name":"kept"}}`)
	before := c.RESTConfig()
	watch := connect(t, before).watch(configMaps, created.Metadata.ResourceVersion)
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(watch); err != nil || len(rest) > 0 {
		t.Errorf("watch at a clean stop: got %q, %v, want a clean end", rest, err)
	}

	c = New(t, Options{DataDir: dir})
	if after := c.RESTConfig(); after.Host != before.Host || after.BearerToken != before.BearerToken {
		t.Errorf("address after restart: got %s, want %s", after.Host, before.Host)
	}
	c.KillAPIServer()
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := connect(t, before).get(configMaps + "/kept"); got != created {
		t.Errorf("after stop and kill: got %+v, want %+v", got, created)
	}
}

func TestUsersOfKubeconfig(t *testing.T) {
	c := New(t, Options{})
	if got := status(t, c.LimitedRESTConfig(), configMaps); got != http.StatusForbidden {
		t.Errorf("limited user: got status %d, want 403", got)
	}
	stranger := c.RESTConfig()
	stranger.BearerToken = "none"
	if got := status(t, stranger, configMaps); got != http.StatusUnauthorized {
		t.Errorf("unknown token: got status %d, want 401", got)
	}
	// The role "view" itself is empty: a controller would fill it from this one.
	binding := `{"metadata":{"name":"limited"},"subjects":[{"kind":"User","name":"` + Limited + `"}],
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"system:aggregate-to-view"}}`
	connect(t, c.RESTConfig()).create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
	eventually(t, func() bool { return status(t, c.LimitedRESTConfig(), configMaps) == http.StatusOK })

	fromFile, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if fromFile.BearerToken != c.Token(Admin) || fromFile.Insecure {
		t.Errorf("current context of kubeconfig: got %s, want the admin's, over verified TLS", fromFile)
	}
	var version struct{ GitVersion string }
	connect(t, fromFile).decode("/version", &version)
	if !strings.HasPrefix(version.GitVersion, "v1.") {
		t.Errorf("version: got %q, want that of the Kubernetes module", version.GitVersion)
	}
}

func TestFailedStartShowsLog(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	_, err := Start(t.Context(), Options{DataDir: dir, APIServerFlags: []string{"--runtime-config=nonsense/v1=true"}})
	if err == nil || !strings.Contains(err.Error(), "nonsense") || !strings.Contains(err.Error(), filepath.Join(dir, "all.log")) {
		t.Errorf("start with a wrong flag: got %v, want the reason and the log's end", err)
	}
	t.Logf("failed after %s", time.Since(began))
}

func TestBuildIsCached(t *testing.T) {
	first, err := Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Build(t.Context())
	if err != nil || first != second {
		t.Fatalf("second build: got %s, %v, want %s", second, err, first)
	}
	if after, err := os.Stat(second); err != nil || !os.SameFile(before, after) {
		t.Errorf("the second build is another file (%v), want the first one's", err)
	}
}

// client is a plain HTTP client: what is tested here is the server.
type client struct {
	t    *testing.T
	http *http.Client
	host string
}

// object holds the fields of any object, or Status, that the tests look at.
type object struct {
	Metadata struct{ Name, UID, ResourceVersion string }
	Code     int
}

type frame struct {
	Type   string
	Object object
}

func connect(t *testing.T, config *rest.Config) client {
	t.Helper()
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	return client{t: t, http: h, host: config.Host}
}

// dial opens a connection of its own: one that a killed server left behind fails in its own ways.
func (c client) dial() error {
	c.http.CloseIdleConnections()
	connection, err := net.Dial("tcp", strings.TrimPrefix(c.host, "https://"))
	if err == nil {
		connection.Close()
	}
	return err
}

func (c client) do(method, path, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.host+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return c.http.Do(request)
}

func (c client) get(path string) (o object) {
	c.t.Helper()
	c.decode(path, &o)
	return o
}

func (c client) decode(path string, into any) {
	c.t.Helper()
	response, err := c.do(http.MethodGet, path, "")
	c.read(response, err, http.StatusOK, into)
}

func (c client) create(path, body string) (o object) {
	c.t.Helper()
	response, err := c.do(http.MethodPost, path, body)
	c.read(response, err, http.StatusCreated, &o)
	return o
}

func (c client) read(response *http.Response, err error, want int, into any) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != want {
		c.t.Fatalf("%s %s: got %s, %v, want %d: %s", response.Request.Method, response.Request.URL, response.Status, err, want, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) watch(path, from string) io.ReadCloser {
	c.t.Helper()
	response, err := c.do(http.MethodGet, path+"?watch=1&timeoutSeconds=10&resourceVersion="+from, "")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		c.t.Fatalf("watch %s from %s: got %s", path, from, response.Status)
	}
	return response.Body
}

func (c client) firstFrame(path, from string) (f frame) {
	c.t.Helper()
	stream := c.watch(path, from)
	defer stream.Close()
	line, err := bufio.NewReader(stream).ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("watch %s from %s: %v", path, from, err)
	}
	if err := json.Unmarshal(line, &f); err != nil {
		c.t.Fatal(err)
	}
	return f
}

func status(t *testing.T, config *rest.Config, path string) int {
	t.Helper()
	response, err := connect(t, config).do(http.MethodGet, path, "")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	const limit = 2 * time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s", limit)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
