package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/kafka"
)

func TestSecureConnections(t *testing.T) {
	real := realKafka(t)
	files := real.Certificates()
	trust := &TLS{CAFile: files.CA}
	password := filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(password, []byte("wonderland\n"), 0o600))
	for name, options := range map[string]Options{
		"PLAIN":                  {Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: Plain, User: "alice", Password: "wonderland"}},
		"SCRAM-SHA-256":          {Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: ScramSHA256, User: "alice", PasswordFile: password}},
		"SCRAM-SHA-512":          {Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: ScramSHA512, User: "alice", Password: "wonderland"}},
		"SCRAM-SHA-512 over TLS": {Brokers: real.BrokersAt(kafka.SASLTLS), TLS: trust, SASL: &SASL{Mechanism: ScramSHA512, User: "alice", Password: "wonderland"}},
		"TLS":                    {Brokers: real.BrokersAt(kafka.TLS), TLS: trust},
		"TLS, other name":        {Brokers: real.BrokersAt(kafka.OtherName), TLS: &TLS{CAFile: files.CA, ServerName: "kafka.invalid"}},
		"mutual TLS":             {Brokers: real.BrokersAt(kafka.MutualTLS), TLS: &TLS{CAFile: files.CA, CertFile: files.ClientCert, KeyFile: files.ClientKey}},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, options)
			must(t, c.Reach(t.Context()))
			topic, p := made(t, c, 1, nil), producer(t, c)
			mustSend(t, c, ProduceRequest{Topic: topic, Batch: batch{Producer: p, values: []string{"a"}}.bytes()})
		})
	}
}

// TestWrongSecurity holds that whatever is wrong with a connection is told, with its cause and the setting.
func TestWrongSecurity(t *testing.T) {
	real := realKafka(t)
	files := real.Certificates()
	trust := &TLS{CAFile: files.CA}
	alice := &SASL{Mechanism: ScramSHA256, User: "alice", Password: "wonderland"}
	for _, test := range []struct {
		name    string
		options Options
		class   Class
		want    []string
	}{
		{"wrong password, PLAIN", Options{Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: Plain, User: "alice", Password: "no"}}, Fatal,
			[]string{"log in to Kafka as alice with PLAIN: Kafka's error 58 SASL_AUTHENTICATION_FAILED", "check kafka.sasl.user, kafka.sasl.password"}},
		{"wrong password, SCRAM", Options{Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: ScramSHA512, User: "alice", Password: "no"}}, Fatal,
			[]string{"log in to Kafka as alice with SCRAM-SHA-512", "58", "kafka.sasl.password"}},
		{"unknown user", Options{Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: ScramSHA256, User: "nobody", Password: "no"}}, Fatal,
			[]string{"as nobody", "58", "kafka.sasl.user"}},
		{"a login that is not enabled", Options{Brokers: real.BrokersAt(kafka.SASLTLS), TLS: trust, SASL: &SASL{Mechanism: AWSMSKIAM}}, Fatal,
			[]string{"UNSUPPORTED_SASL_MECHANISM", "set kafka.sasl.mechanism"}},
		{"login on a listener without", Options{Brokers: real.Brokers(), SASL: alice}, Fatal,
			[]string{"ILLEGAL_SASL_STATE", "the listener has no login", "remove kafka.sasl"}},
		{"no login on a listener with", Options{Brokers: real.BrokersAt(kafka.SASL)}, Retriable, []string{"the listener may want a login: set kafka.sasl"}},
		{"no login on a listener with, TLS", Options{Brokers: real.BrokersAt(kafka.SASLTLS), TLS: trust}, Retriable, []string{"the listener may want a login: set kafka.sasl"}},
		{"plaintext to TLS", Options{Brokers: real.BrokersAt(kafka.TLS)}, Fatal, []string{"not a Kafka broker without TLS", "set kafka.tls"}},
		{"TLS to plaintext", Options{Brokers: real.Brokers(), TLS: trust}, Retriable, []string{"EOF", "remove kafka.tls"}},
		{"wrong CA", Options{Brokers: real.BrokersAt(kafka.TLS), TLS: &TLS{CAFile: files.ForeignCA}}, Fatal,
			[]string{"x509: certificate signed by unknown authority", "set kafka.tls.ca"}},
		{"the system's CAs", Options{Brokers: real.BrokersAt(kafka.TLS), TLS: &TLS{}}, Fatal, []string{"set kafka.tls.ca"}},
		{"wrong name", Options{Brokers: real.BrokersAt(kafka.OtherName), TLS: trust}, Fatal,
			[]string{"x509", "127.0.0.1", "kafka.tls.serverName"}},
		{"no client certificate", Options{Brokers: real.BrokersAt(kafka.MutualTLS), TLS: trust}, Fatal,
			[]string{"remote error: tls", "set kafka.tls.cert and kafka.tls.key"}},
		{"foreign client certificate", Options{Brokers: real.BrokersAt(kafka.MutualTLS), TLS: &TLS{CAFile: files.CA, CertFile: files.ForeignCert, KeyFile: files.ForeignKey}}, Fatal,
			[]string{"remote error: tls", "set kafka.tls.cert and kafka.tls.key"}},
	} {
		t.Run(test.name, func(t *testing.T) { wantRefusal(t, test.options, test.class, test.want) })
	}
}

// wantRefusal wants the same error of the first look and of a request. A busy broker may not have answered the first
// time.
func wantRefusal(t *testing.T, options Options, class Class, want []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := open(t, options)
	reached := c.Reach(ctx)
	for class == Fatal && Classify(reached) == Retriable && ctx.Err() == nil {
		reached = c.Reach(ctx)
	}
	if reached == nil {
		t.Fatal("connected")
	}
	text := Explain(reached).Error()
	t.Log(text)
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("the error has no %q", part)
		}
	}
	if got := Classify(reached); got != class {
		t.Errorf("class %s, want %s", got, class)
	}
	if permanent := errors.As(Explain(reached), new(*sink.PermanentError)); permanent != (class == Fatal) {
		t.Errorf("permanent: %t", permanent)
	}
	if _, err := c.Produce(ctx, ProduceRequest{Topic: "t", Batch: batch{values: []string{"a"}}.bytes()}); err == nil || ctx.Err() != nil {
		t.Errorf("produce: %v after %v", err, ctx.Err())
	}
}

// TestI6PortsThatAreNotKafka holds that a foreign protocol costs no memory, and that nobody waits for it for ever.
func TestI6PortsThatAreNotKafka(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writeCA(t, ca, secure.Certificate())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var cases sync.WaitGroup
	for _, test := range []struct {
		name    string
		address string
		tls     *TLS
		class   Class
		want    []string
	}{
		{"HTTP, which waits for a line", web.Listener.Addr().String(), nil, Retriable, []string{"i/o timeout", "kafka.brokers"}},
		{"HTTP, asked with TLS", web.Listener.Addr().String(), &TLS{CAFile: ca}, Fatal, []string{"does not look like a TLS handshake", "remove kafka.tls"}},
		{"HTTPS", secure.Listener.Addr().String(), &TLS{CAFile: ca, ServerName: "example.com"}, Retriable, []string{"i/o timeout"}},
		{"silence", listen(t, func(net.Conn) {}), nil, Retriable, []string{"i/o timeout", "kafka.brokers"}},
		{"silence, asked with TLS", listen(t, func(net.Conn) {}), &TLS{CAFile: ca}, Retriable, []string{"deadline exceeded"}},
		{"another protocol", listen(t, says("SSH-2.0-OpenSSH_9.6\r\n")), nil, Fatal, []string{`not a Kafka broker without TLS: its answer begins with "SSH-"`}},
		{"another protocol, asked with TLS", listen(t, says("SSH-2.0-OpenSSH_9.6\r\n")), &TLS{CAFile: ca}, Fatal, []string{"does not look like a TLS handshake", "remove kafka.tls"}},
		{"a small frame with a huge count", listen(t, says("\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x7f\xff\xff\xff")), nil, Fatal, []string{"not a Kafka broker"}},
		{"half a frame", listen(t, says("\x00\x00\x00\x0a\x00")), nil, Retriable, []string{"EOF", "check that the broker is up"}},
		{"nobody", unused(t), nil, Retriable, []string{"connection refused", "the address in kafka.brokers"}},
		{"closed at once", listen(t, func(conn net.Conn) { conn.Close() }), nil, Retriable, []string{"check that the broker is up", "kafka.tls"}},
	} {
		cases.Go(func() {
			t.Run(test.name, func(t *testing.T) {
				wantRefusal(t, Options{Brokers: []string{test.address}, TLS: test.tls}, test.class, test.want)
			})
		})
	}
	cases.Wait()
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
}
