package conn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// Login says who we are and whom we trust.
type Login struct {
	CredentialsFile string // JWT and seed of a user; with NkeySeedFile the JWT alone
	NkeySeedFile    string // seed of a user
	User, Password  string
	Token           string
	// TLS nil verifies against the system's authorities where the server or the URL asks for TLS. Its files are read
	// again for every connection, so they can be renewed.
	TLS      *sink.TLS
	TLSFirst bool // with TLS: handshake before the server speaks
}

// Check reads the files, and reports all problems at once.
func (l *Login) Check() error {
	var problems []error
	note := func(what string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", what, err))
		}
	}
	if l.CredentialsFile != "" {
		note("nats.credentials", checkCredentialsFile(l.CredentialsFile, l.NkeySeedFile == ""))
	}
	if l.NkeySeedFile != "" {
		if _, err := natsgo.NkeyOptionFromSeed(l.NkeySeedFile); err != nil {
			note("nats.nkey: "+l.NkeySeedFile, Terse{err})
		}
	}
	if l.TLS != nil {
		_, err := l.TLS.Config("nats.tls")
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func checkCredentialsFile(path string, seedToo bool) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if token, err := nkeys.ParseDecoratedJWT(content); err != nil || token == "" {
		return fmt.Errorf("%s holds no user's JWT: make it with nsc generate creds", path)
	}
	if _, err := nkeys.ParseDecoratedNKey(content); err != nil && seedToo {
		return fmt.Errorf("%s holds no seed: make it with nsc generate creds", path)
	}
	return nil
}

// Options are those of the client library.
func (l *Login) Options() []natsgo.Option {
	var options []natsgo.Option
	switch {
	case l.CredentialsFile != "" && l.NkeySeedFile != "":
		options = append(options, natsgo.UserCredentials(l.CredentialsFile, l.NkeySeedFile))
	case l.CredentialsFile != "":
		options = append(options, natsgo.UserCredentials(l.CredentialsFile))
	case l.NkeySeedFile != "":
		options = append(options, func(o *natsgo.Options) error { // reads the file when it is applied, as the others do
			option, err := natsgo.NkeyOptionFromSeed(l.NkeySeedFile)
			if err == nil {
				err = option(o)
			}
			return err
		})
	case l.User != "":
		options = append(options, natsgo.UserInfo(l.User, l.Password))
	case l.Token != "":
		options = append(options, natsgo.Token(l.Token))
	}
	if l.TLS == nil {
		return options
	}
	options = append(options, natsgo.Secure(&tls.Config{MinVersion: tls.VersionTLS12, ServerName: l.TLS.ServerName}))
	if l.TLS.CAFile != "" {
		options = append(options, natsgo.RootCAs(l.TLS.CAFile))
	}
	if l.TLS.CertFile != "" {
		options = append(options, natsgo.ClientCert(l.TLS.CertFile, l.TLS.KeyFile))
	}
	if l.TLSFirst {
		options = append(options, natsgo.TLSHandshakeFirst())
	}
	return options
}
