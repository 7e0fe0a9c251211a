package sink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS configures verified connections; verification cannot be switched off. The files hold PEM.
type TLS struct {
	CAFile            string // "" is the system's authorities
	CertFile, KeyFile string // of the client; both or none
	ServerName        string // what the other side's certificate must name; "" is the host that is dialled
}

// Config reads the files. It reports all problems at once, with their keys in the section of the configuration.
func (t *TLS) Config(section string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	var problems []error
	if t.CAFile != "" {
		content, err := os.ReadFile(t.CAFile)
		config.RootCAs = x509.NewCertPool()
		if err == nil && !config.RootCAs.AppendCertsFromPEM(content) {
			err = fmt.Errorf("%s holds no certificate in PEM form", t.CAFile)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s.ca: %w", section, err))
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		problems = append(problems, fmt.Errorf("%s.cert and %s.key belong together: set both or none", section, section))
	} else if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s.cert and %s.key: %w", section, section, err))
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, errors.Join(problems...)
}
