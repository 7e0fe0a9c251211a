package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func TestSecuredListeners(t *testing.T) {
	RequireReal(t)
	c := Start(t, Options{
		Listeners: []Listener{SASL, TLS, MutualTLS, SASLTLS, OtherName},
		Users:     map[string]string{"alice": `p"w`, "admin": "pw"}, ACLs: true, SuperUsers: []string{"admin"},
	})
	c.CreateTopic(t, "secured", Topic{})
	trusting, err := c.Certificates().ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	anonymous := &tls.Config{RootCAs: trusting.RootCAs}
	foreign, err := tls.LoadX509KeyPair(c.Certificates().ForeignCert, c.Certificates().ForeignKey)
	if err != nil {
		t.Fatal(err)
	}
	alice := scram.Auth{User: "alice", Pass: `p"w`}
	put := func(listener Listener, options ...kgo.Opt) error {
		return putAt(t, c, listener, options...)
	}
	secret := func(listener Listener, password string) error {
		return put(listener, kgo.SASL(plain.Auth{User: "alice", Pass: password}.AsMechanism()), kgo.DialTLSConfig(anonymous))
	}

	if err := put(SASL, kgo.SASL(alice.AsSha256Mechanism())); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("alice without ACL: got %v, want %v", err, kerr.TopicAuthorizationFailed)
	}
	for _, user := range []string{"alice", ClientUser, "bob"} {
		c.AddACL(t, ACL{User: user, Operation: kmsg.ACLOperationWrite, Resource: "secured"})
	}
	for name, attempt := range map[string]func() error{
		"PLAIN":         func() error { return put(SASL, kgo.SASL(plain.Auth{User: "alice", Pass: `p"w`}.AsMechanism())) },
		"SCRAM-SHA-256": func() error { return put(SASL, kgo.SASL(alice.AsSha256Mechanism())) },
		"SCRAM-SHA-512": func() error { return put(SASL, kgo.SASL(alice.AsSha512Mechanism())) },
		"OAUTHBEARER":   func() error { return put(SASL, kgo.SASL(bearer(UnsecuredToken("bob", time.Now().Add(time.Hour))))) },
		"TLS":           func() error { return put(TLS, kgo.DialTLSConfig(anonymous)) },
		"mutual TLS":    func() error { return put(MutualTLS, kgo.DialTLSConfig(trusting)) },
		"SASL over TLS": func() error { return secret(SASLTLS, `p"w`) },
		"other name": func() error {
			return put(OtherName, kgo.DialTLSConfig(&tls.Config{RootCAs: trusting.RootCAs, ServerName: "kafka.invalid"}))
		},
	} {
		if err := attempt(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, attempt := range map[string]func() error{
		"wrong password":        func() error { return secret(SASLTLS, "wrong") },
		"expired token":         func() error { return put(SASL, kgo.SASL(bearer(UnsecuredToken("bob", time.Now().Add(-time.Hour))))) },
		"unknown CA":            func() error { return put(TLS, kgo.DialTLSConfig(&tls.Config{RootCAs: x509.NewCertPool()})) },
		"another name":          func() error { return put(OtherName, kgo.DialTLSConfig(anonymous)) },
		"no client certificate": func() error { return put(MutualTLS, kgo.DialTLSConfig(anonymous)) },
		"foreign client certificate": func() error {
			return put(MutualTLS, kgo.DialTLSConfig(&tls.Config{RootCAs: trusting.RootCAs, Certificates: []tls.Certificate{foreign}}))
		},
	} {
		if err := attempt(); err == nil {
			t.Errorf("%s: written", name)
		}
	}

	c.SetSCRAMPassword(t, "alice", "new")
	c.await(t, "new password", func(context.Context) error {
		return put(SASL, kgo.SASL(scram.Auth{User: "alice", Pass: "new"}.AsSha512Mechanism()))
	})
	c.RemoveACL(t, ACL{User: ClientUser, Operation: kmsg.ACLOperationWrite, Resource: "secured"})
	if err := put(MutualTLS, kgo.DialTLSConfig(trusting)); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("client without ACL: got %v, want %v", err, kerr.TopicAuthorizationFailed)
	}
}

// putAt writes one record with a client of its own, or says why it cannot.
func putAt(t *testing.T, c *Cluster, listener Listener, options ...kgo.Opt) error {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(c.BrokersAt(listener)...), kgo.DefaultProduceTopic("secured"))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	return client.ProduceSync(ctx, kgo.StringRecord("value")).FirstErr()
}

func bearer(token string) sasl.Mechanism { return oauth.Auth{Token: token}.AsMechanism() }

func TestTokenServer(t *testing.T) {
	at := TokenServer(t, map[string]string{"bob": "secret"}, time.Minute)
	for secret, want := range map[string]int{"secret": http.StatusOK, "wrong": http.StatusUnauthorized} {
		response, err := http.PostForm(at, url.Values{"grant_type": {"client_credentials"}, "client_id": {"bob"}, "client_secret": {secret}})
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			AccessToken string `json:"access_token"`
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		response.Body.Close()
		if err != nil || response.StatusCode != want || (answer.AccessToken != "") != (want == http.StatusOK) {
			t.Errorf("token for secret %s: got %s, %+v, %v, want status %d", secret, response.Status, answer, err, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
