package config

import "slices"

// Audit is where the API server's audit webhook is received.
type Audit struct {
	Listen   string // address
	TLS      ServerTLS
	ClientCA string // file in PEM: who may send
}

// ServerTLS is what a server shows of itself. Both are files in PEM, and read for every connection.
type ServerTLS struct {
	Cert, Key string
}

func (a *Audit) keys() []key {
	return []key{
		{"listen", text(&a.Listen), "Needed. Address of the webhook, such as `:9443`."},
		{"tls", section(&a.TLS), "The certificate that the API server is shown. Its files are read for every connection, and may be renewed."},
		{"clientCA", text(&a.ClientCA),
			"Needed. A file in PEM with the certificates that may have signed a sender's. Whoever has such a certificate " +
				"can name any user, so it must sign nothing else."},
	}
}

func (t *ServerTLS) keys() []key {
	return []key{
		{"cert", text(&t.Cert), "Needed. A file in PEM with the certificate, and what is between it and its root."},
		{"key", text(&t.Key), "Needed. A file in PEM with the certificate's private key."},
	}
}

// audit checks who is told of the users, and by what.
func (k *checker) audit(c *Config) {
	if c.Audit == nil {
		return
	}
	switch {
	case c.Audit.Listen == "":
		k.problem("audit.listen", "missing; want an address such as :9443")
	case !isListenAddress(c.Audit.Listen):
		k.problem("audit.listen", "want an address such as :9443 or 127.0.0.1:9443, have %q", shorten(c.Audit.Listen))
	case c.Audit.Listen == c.Listen && c.Listen != "127.0.0.1:0":
		k.problem("audit.listen", "%q is the address of listen already; give it one of its own", shorten(c.Audit.Listen))
	}
	if tls := c.Audit.TLS; tls.Cert == "" || tls.Key == "" {
		k.problem("audit.tls", "want cert and key, files in PEM with the certificate that the API server is shown, and with its private key")
	}
	if c.Audit.ClientCA == "" {
		k.problem("audit.clientCA", "missing; want a file in PEM with the certificates that may have signed a sender's")
	}
	if told := slices.ContainsFunc(c.Sinks, func(s Sink) bool { return s.Actors }); !told && len(c.Sinks) > 0 {
		k.problem("audit", "no sink takes what it receives; set actors: true on one, or leave audit out")
	}
}

// actors checks that the sink can be told of the users.
func (k *checker) actors(path string, s *Sink, audit *Audit) {
	switch {
	case !s.Actors:
	case audit == nil:
		k.problem(path, "needs audit, which receives them; add that, or leave actors out")
	case s.Format != "" && s.Format != Formats()[0]:
		k.problem(path, "a record of format: %s is an object, and has no place for a user; choose format: %s, or leave actors out", shorten(s.Format), Formats()[0])
	case s.NATS != nil && s.NATS.KV != "":
		k.problem(path, "a bucket holds the present state of each object, and no users; use a stream, or leave actors out")
	}
}
