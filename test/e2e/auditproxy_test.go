package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/authority"
)

// auditProxy stands between an API server and the exporter, and delays, repeats and loses batches.
type auditProxy struct {
	t      *testing.T
	to     string
	client *http.Client
	config string // a kubeconfig for the API server

	mu       sync.Mutex // guards the following
	rnd      *rand.Rand
	bad      bool            // batches are lost, too
	lost     map[string]bool // claims of lost batches
	sent     map[string]bool // and of those that were taken
	repeated int
	failed   int
}

func newAuditProxy(t *testing.T, ca *authority.Authority, to string) *auditProxy {
	t.Helper()
	cert, key := ca.Pair("apiserver")
	p := &auditProxy{
		t: t, to: "https://" + to, rnd: rand.New(rand.NewPCG(seed(t), 22)), lost: map[string]bool{}, sent: map[string]bool{},
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: ca.Sender(cert, key)}, Timeout: 40 * time.Second},
	}
	ownCert, ownKey := ca.Pair("proxy")
	pair, err := tls.LoadX509KeyPair(ownCert, ownKey)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(listener) }()
	t.Cleanup(func() { server.Close(); <-done; p.client.CloseIdleConnections() })
	p.config = p.kubeconfig(ca, listener.Addr())
	return p
}

// kubeconfig is the webhook's.
func (p *auditProxy) kubeconfig(ca *authority.Authority, address net.Addr) string {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: kubecdc
  cluster: {server: "https://%s/audit", certificate-authority: %q}
contexts:
- name: kubecdc
  context: {cluster: kubecdc, user: ""}
current-context: kubecdc
`, address, ca.File)
	path := filepath.Join(filepath.Dir(ca.File), "webhook.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// fate is what becomes of a batch.
func (p *auditProxy) fate() (loses, repeats bool, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.rnd.IntN(20)
	return p.bad && n < 3, n >= 17, time.Duration(p.rnd.IntN(300)) * time.Millisecond
}

func (p *auditProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	loses, repeats, delay := p.fate()
	time.Sleep(delay)
	if loses {
		p.note(body, p.lost)
		return
	}
	if code, err := p.send(body); err != nil || code != http.StatusOK {
		p.mu.Lock()
		p.failed++
		p.mu.Unlock()
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprint(err), http.StatusServiceUnavailable) // the API server sends it again
		return
	}
	p.note(body, p.sent)
	if repeats {
		p.mu.Lock()
		p.repeated++
		p.mu.Unlock()
		if code, err := p.send(body); err != nil || code != http.StatusOK {
			p.t.Logf("a batch again: %d, %v", code, err)
		}
	}
}

func (p *auditProxy) send(body []byte) (int, error) {
	answer, err := p.client.Post(p.to, "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// audited is what the judge knows of an event.
type audited struct {
	AuditID          string
	User             struct{ Username string }
	ImpersonatedUser struct{ Username string }
	ResponseObject   struct {
		Metadata struct{ UID, ResourceVersion string }
		Details  struct{ UID string }
	}
}

// claim names who was answered with which state.
func claim(user, uid, version string) string { return user + " " + uid + " " + version }

// note notes the answers of a batch.
func (p *auditProxy) note(body []byte, as map[string]bool) {
	var list struct{ Items []audited }
	if err := json.Unmarshal(body, &list); err != nil {
		p.t.Errorf("a batch: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range list.Items {
		user, answer := e.User.Username, &e.ResponseObject
		if e.ImpersonatedUser.Username != "" {
			user = e.ImpersonatedUser.Username
		}
		if answer.Details.UID != "" {
			answer.Metadata.UID = answer.Details.UID
		}
		as[claim(user, answer.Metadata.UID, answer.Metadata.ResourceVersion)] = true
	}
}
