package nats

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

func (o *Options) checkCredentials() error {
	given := 0
	for _, set := range []bool{o.CredentialsFile != "" || o.NkeySeedFile != "", o.User != "" || o.Password != "", o.Token != ""} {
		if set {
			given++
		}
	}
	if given > 1 {
		return errors.New("options CredentialsFile, NkeySeedFile, User and Token are different ways to log in: set one")
	}
	if o.Password != "" && o.User == "" {
		return errors.New("option Password is set without User: set both or none")
	}
	if o.CredentialsFile != "" {
		if err := checkCredentialsFile(o.CredentialsFile, o.NkeySeedFile == ""); err != nil {
			return fmt.Errorf("option CredentialsFile: %w", err)
		}
	}
	if o.NkeySeedFile != "" {
		if _, err := natsgo.NkeyOptionFromSeed(o.NkeySeedFile); err != nil {
			return fmt.Errorf("option NkeySeedFile: %s: %s", o.NkeySeedFile, detail(err))
		}
	}
	return nil
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

func (o *Options) checkTLS() error {
	if o.TLS == nil {
		return nil
	}
	var problems []error
	if o.TLS.CAFile != "" {
		content, err := os.ReadFile(o.TLS.CAFile)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(content) {
			err = fmt.Errorf("%s holds no certificate in PEM form", o.TLS.CAFile)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("option TLS.CAFile: %w", err))
		}
	}
	if (o.TLS.CertFile == "") != (o.TLS.KeyFile == "") {
		problems = append(problems, errors.New("options TLS.CertFile and TLS.KeyFile belong together: set both or none"))
	} else if o.TLS.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(o.TLS.CertFile, o.TLS.KeyFile); err != nil {
			problems = append(problems, fmt.Errorf("option TLS.CertFile: %w", err))
		}
	}
	return errors.Join(problems...)
}

// login is the part of the client's options that says who we are and whom we trust.
func (o *Options) login() []natsgo.Option {
	var options []natsgo.Option
	switch {
	case o.CredentialsFile != "" && o.NkeySeedFile != "":
		options = append(options, natsgo.UserCredentials(o.CredentialsFile, o.NkeySeedFile))
	case o.CredentialsFile != "":
		options = append(options, natsgo.UserCredentials(o.CredentialsFile))
	case o.NkeySeedFile != "":
		options = append(options, nkeyFile(o.NkeySeedFile))
	case o.User != "":
		options = append(options, natsgo.UserInfo(o.User, o.Password))
	case o.Token != "":
		options = append(options, natsgo.Token(o.Token))
	}
	if o.TLS == nil {
		return options
	}
	options = append(options, natsgo.Secure(&tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.TLS.ServerName}))
	if o.TLS.CAFile != "" {
		options = append(options, natsgo.RootCAs(o.TLS.CAFile))
	}
	if o.TLS.CertFile != "" {
		options = append(options, natsgo.ClientCert(o.TLS.CertFile, o.TLS.KeyFile))
	}
	if o.TLS.First {
		options = append(options, natsgo.TLSHandshakeFirst())
	}
	return options
}

// nkeyFile reads the seed when it is applied, as the library's other options of files do.
func nkeyFile(path string) natsgo.Option {
	return func(o *natsgo.Options) error {
		option, err := natsgo.NkeyOptionFromSeed(path)
		if err != nil {
			return err
		}
		return option(o)
	}
}
