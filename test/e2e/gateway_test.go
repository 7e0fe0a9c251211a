package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubecdc/kubecdc/test/testcluster"
)

// gateway stands between the exporter and the API server, with the server's own certificate. It can lose single frames
// of watches, as etcd and API servers have done, and cut all connections.
type gateway struct {
	server *httptest.Server

	mu     sync.Mutex     // guards the following
	losing string         // the plural whose frames are lost
	loses  []string       // "DELETED shop/map-1", those that have not come yet
	asked  map[string]int // how often where the server stands was asked for, by plural
	lost   []string       // the same and its version; it is lost again when another watch brings it again
	open   []*lossyBody   // all watches that there were
}

// newGateway starts a gateway that passes everything on; it ends with the test.
func newGateway(t *testing.T, cluster *testcluster.Cluster) *gateway {
	t.Helper()
	config := cluster.RESTConfig()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(cluster.DataDir(), "apiserver.crt"), filepath.Join(cluster.DataDir(), "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(config.CAData)
	silent := log.New(io.Discard, "", 0)
	g := &gateway{asked: map[string]int{}}
	g.server = httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}},
		FlushInterval:  -1, // each frame at once
		ModifyResponse: g.pass,
		// as a server that is away
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     silent,
	})
	g.server.Config.ErrorLog = silent
	g.server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	g.server.StartTLS()
	t.Cleanup(func() { g.cut(); g.server.Close() })
	return g
}

// cut ends all connections of the exporter.
func (g *gateway) cut() { g.server.CloseClientConnections() }

// endWatches ends all watches as the API server does when their time is over.
func (g *gateway) endWatches() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, watch := range g.open {
		watch.over.Store(true)
		watch.Close()
	}
	g.open = nil
}

// kubeconfig writes a copy of the file that leads through the gateway, and returns its path.
func (g *gateway) kubeconfig(t *testing.T, file, dir string) string {
	t.Helper()
	return kubeconfigTo(t, g.server.URL, file, filepath.Join(dir, "kubeconfig"))
}

// kubeconfigTo writes a copy of the file that leads to another address of the server, and returns its path.
func kubeconfigTo(t *testing.T, url, file, copied string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = url
	}
	if err := clientcmd.WriteToFile(*config, copied); err != nil {
		t.Fatal(err)
	}
	return copied
}

// lose makes the gateway lose the next frame of each type and object, such as "DELETED shop/map-1", for good, of
// watches of the resource with the plural.
func (g *gateway) lose(plural string, frames ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.losing, g.loses = plural, frames
}

// left are the frames that were not lost yet.
func (g *gateway) left() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.loses)
}

// questions is how many lists of one object the API server has answered, which ask where it stands.
func (g *gateway) questions(plural string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked[plural]
}

// pass counts the questions, and puts the losses into a watch.
func (g *gateway) pass(answer *http.Response) error {
	request := answer.Request.URL
	query := request.Query()
	if query.Get("limit") == "1" && query.Get("fieldSelector") == "" && answer.StatusCode == http.StatusOK {
		g.mu.Lock()
		g.asked[path.Base(request.Path)]++
		g.mu.Unlock()
	}
	if query.Get("watch") == "true" {
		body := &lossyBody{ReadCloser: answer.Body, frames: bufio.NewReader(answer.Body), lost: func(frame []byte) bool {
			return g.isLost(path.Base(request.Path), frame)
		}}
		g.mu.Lock()
		g.open, answer.Body = append(g.open, body), body
		g.mu.Unlock()
	}
	return nil
}

func (g *gateway) isLost(plural string, text []byte) bool {
	var frame struct {
		Type   string
		Object content
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.losing != plural || json.Unmarshal(text, &frame) != nil {
		return false
	}
	m := &frame.Object.Metadata
	name := frame.Type + " " + joined(m.Namespace, m.Name)
	if i := slices.Index(g.loses, name); i >= 0 {
		g.loses = slices.Delete(g.loses, i, i+1)
		g.lost = append(g.lost, name+" "+m.ResourceVersion)
	}
	return slices.Contains(g.lost, name+" "+m.ResourceVersion)
}

// lossyBody is a watch without the frames that are lost.
type lossyBody struct {
	io.ReadCloser
	frames *bufio.Reader
	lost   func(frame []byte) bool
	rest   bytes.Reader // of a frame
	over   atomic.Bool  // it ends as if all was read
}

// Read is io.Reader's; it returns a part of one frame.
func (b *lossyBody) Read(p []byte) (int, error) {
	for b.rest.Len() == 0 {
		frame, err := b.frames.ReadBytes('\n')
		if err == nil && b.lost(frame) {
			continue
		}
		if len(frame) == 0 {
			if b.over.Load() {
				err = io.EOF
			}
			return 0, err
		}
		b.rest.Reset(frame)
	}
	return b.rest.Read(p)
}
