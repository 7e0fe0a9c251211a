package wire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrongOptions(t *testing.T) {
	brokers := []string{"host:9092"}
	garbage := filepath.Join(t.TempDir(), "garbage")
	must(t, os.WriteFile(garbage, []byte("\n"), 0o600))
	oauth := OAuth{TokenURL: "https://host/token", ClientID: "id", ClientSecret: "secret"}
	broken := func(change func(*OAuth)) *SASL {
		wrong := oauth
		change(&wrong)
		return &SASL{Mechanism: OAuthBearer, OAuth: &wrong}
	}
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{Brokers: brokers, TLS: &TLS{CAFile: "missing.pem"}}, "kafka.tls.ca: open missing.pem"},
		{Options{Brokers: brokers, TLS: &TLS{CAFile: garbage}}, "holds no certificate in PEM form"},
		{Options{Brokers: brokers, TLS: &TLS{CertFile: garbage}}, "kafka.tls.cert and kafka.tls.key belong together"},
		{Options{Brokers: brokers, TLS: &TLS{CertFile: garbage, KeyFile: garbage}}, "kafka.tls.cert and kafka.tls.key: tls: failed to find"},
		{Options{Brokers: brokers, SASL: &SASL{Mechanism: Plain, User: "a", PasswordFile: garbage}}, "is empty"},
		{Options{Brokers: brokers, SASL: &SASL{Mechanism: Plain, User: "a", PasswordFile: "missing"}}, "open missing"},
		{Options{Brokers: brokers, SASL: broken(func(o *OAuth) { o.TokenURL = "host/token" })}, "kafka.sasl.oauth.tokenUrl"},
		{Options{Brokers: brokers, SASL: broken(func(o *OAuth) { o.CAFile = garbage })}, "kafka.sasl.oauth.ca"},
		{Options{Brokers: brokers, SASL: broken(func(o *OAuth) { o.Extensions = map[string]string{"auth": "x"} })}, "kafka.sasl.oauth.extensions"},
		{Options{Brokers: brokers, SASL: broken(func(o *OAuth) { o.Extensions = map[string]string{"a": "x\x01auth=y"} })}, "kafka.sasl.oauth.extensions"},
		{Options{Brokers: brokers, SASL: &SASL{Mechanism: AWSMSKIAM}}, "AWS_MSK_IAM needs TLS: set kafka.tls"},
	} {
		c, err := New(test.options)
		if err == nil {
			c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.options, err, test.want)
		}
	}
}

func TestAllWrongOptionsAreNamedAtOnce(t *testing.T) {
	_, err := New(Options{TLS: &TLS{CAFile: "missing.pem"}, SASL: &SASL{Mechanism: ScramSHA256, PasswordFile: "missing"}})
	for _, want := range []string{"kafka.tls.ca", "kafka.sasl.password"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
