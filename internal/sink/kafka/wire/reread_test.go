package wire

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubecdc/kubecdc/test/kafka"
)

// TestFilesAreReadAgain holds that a renewed password, authority or certificate counts from the next connection on.
func TestFilesAreReadAgain(t *testing.T) {
	real := realKafka(t)
	files := real.Certificates()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, from string) {
		content, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(at(name), content, 0o600)
		}
		must(t, err)
	}
	write := func(name, content string) {
		must(t, os.WriteFile(at(name), []byte(content), 0o600))
	}
	for _, test := range []struct {
		name         string
		before, then func()
		options      Options
	}{
		{"password", func() { write("password", "old") }, func() { write("password", "wonderland\n") },
			Options{Brokers: real.BrokersAt(kafka.SASL), SASL: &SASL{Mechanism: ScramSHA256, User: "alice", PasswordFile: at("password")}}},
		{"CA", func() { put("ca", files.ForeignCA) }, func() { put("ca", files.CA) },
			Options{Brokers: real.BrokersAt(kafka.TLS), TLS: &TLS{CAFile: at("ca")}}},
		{"certificate", func() { put("cert", files.ForeignCert); put("key", files.ForeignKey) }, func() { put("cert", files.ClientCert); put("key", files.ClientKey) },
			Options{Brokers: real.BrokersAt(kafka.MutualTLS), TLS: &TLS{CAFile: files.CA, CertFile: at("cert"), KeyFile: at("key")}}},
	} {
		test.before()
		c := open(t, test.options)
		if err := c.Reach(t.Context()); Classify(err) != Fatal {
			t.Errorf("%s: with the old one: %v", test.name, err)
		}
		test.then()
		c.transport.CloseIdleConnections()
		if err := c.Reach(t.Context()); err != nil {
			t.Errorf("%s: with the new one: %v", test.name, err)
		}
	}
}
