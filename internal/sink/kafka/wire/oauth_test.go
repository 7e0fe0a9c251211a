package wire

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// tokenServer grants tokens that are not signed, which the broker of the tests takes, to one client.
type tokenServer struct {
	*httptest.Server
	granted atomic.Int32
	secret  atomic.Value // string
	expires time.Duration
}

func newTokenServer(t *testing.T, expires time.Duration) *tokenServer {
	s := &tokenServer{expires: expires}
	s.secret.Store("old secret")
	s.Server = httptest.NewServer(http.HandlerFunc(s.grant))
	t.Cleanup(s.Close)
	return s
}

func (s *tokenServer) grant(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	id, secret, _ := r.BasicAuth()
	secret, _ = url.QueryUnescape(secret) // RFC 6749 section 2.3.1
	if r.FormValue("grant_type") != "client_credentials" || id != "exporter" || secret != s.secret.Load() {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":"invalid_client"}`)
		return
	}
	s.granted.Add(1)
	claims := fmt.Sprintf(`{"sub":"token","scope":%q,"iat":%d,"exp":%d}`, r.FormValue("scope")+r.FormValue("audience"), time.Now().Unix(), time.Now().Add(s.expires).Unix())
	encode := base64.RawURLEncoding.EncodeToString
	fmt.Fprintf(w, `{"access_token":"%s.%s.","token_type":"bearer","expires_in":%d}`, encode([]byte(`{"alg":"none"}`)), encode([]byte(claims)), int(s.expires.Seconds()))
}

func (s *tokenServer) options(brokers []string) Options {
	return Options{Brokers: brokers, SASL: &SASL{Mechanism: OAuthBearer, OAuth: &OAuth{TokenURL: s.URL + "/token", ClientID: "exporter",
		ClientSecret: "old secret", Scopes: []string{"produce"}, Audience: "kafka", Extensions: map[string]string{"logicalCluster": "lkc"}}}}
}

func TestOAuthBearer(t *testing.T) {
	real := realKafka(t)
	s := newTokenServer(t, time.Hour)
	c := open(t, s.options(real.BrokersAt(kafka.SASL)))
	must(t, c.Reach(t.Context()))
	topic, p := made(t, c, 1, nil), producer(t, c)
	mustSend(t, c, ProduceRequest{Topic: topic, Batch: batch{Producer: p, values: []string{"a"}}.bytes()})
	if got := s.granted.Load(); got != 1 {
		t.Errorf("%d tokens for all connections, want 1", got)
	}
}

// TestTokensAreRenewed holds that no connection is made with a token that ends, and that the secret's file is read
// again.
func TestTokensAreRenewed(t *testing.T) {
	real := realKafka(t)
	s := newTokenServer(t, tokenMargin)
	options := s.options(real.BrokersAt(kafka.SASL))
	file := filepath.Join(t.TempDir(), "secret")
	options.SASL.OAuth.ClientSecret, options.SASL.OAuth.ClientSecretFile = "", file
	for round, secret := range []string{"old secret", "new secret"} {
		s.secret.Store(secret)
		must(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
		before := s.granted.Load()
		c := open(t, options)
		for range 2 {
			if err := c.Reach(t.Context()); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			c.transport.CloseIdleConnections()
		}
		if got := s.granted.Load() - before; got < 2 {
			t.Errorf("round %d: %d tokens for two times of connecting, want one for each", round, got)
		}
	}
}

func TestWrongOAuth(t *testing.T) {
	brokers := realKafka(t).BrokersAt(kafka.SASL)
	s, expired := newTokenServer(t, time.Hour), newTokenServer(t, -time.Hour)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	silent := "http://" + listen(t, func(net.Conn) {})
	for _, test := range []struct {
		name   string
		server *tokenServer
		change func(*Options)
		class  Class
		want   []string
	}{
		{"wrong secret", s, func(o *Options) { o.SASL.OAuth.ClientSecret = "wrong" }, Fatal,
			[]string{"get a token from " + s.URL, "invalid_client", "kafka.sasl.oauth.clientSecret"}},
		{"no token server", s, func(o *Options) { o.SASL.OAuth.TokenURL = "http://" + unused(t) }, Retriable,
			[]string{"connection refused", "check kafka.sasl.oauth.tokenUrl"}},
		{"silent token server", s, func(o *Options) { o.SASL.OAuth.TokenURL, o.Timeout = silent, 2*time.Second }, Retriable, []string{"deadline exceeded"}},
		{"expired token", expired, func(*Options) {}, Fatal, []string{"the broker refuses the token", "invalid_token", "kafka.sasl.oauth.scopes"}},
		{"token server of another CA", s, func(o *Options) { o.SASL.OAuth.TokenURL = secure.URL }, Fatal, []string{"unknown authority", "set kafka.sasl.oauth.ca"}},
	} {
		options := test.server.options(brokers)
		test.change(&options)
		t.Run(test.name, func(t *testing.T) { wantRefusal(t, options, test.class, test.want) })
	}
}
