package config

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

// check checks the address, which is not the one of listen, and the certificates.
func (a *Audit) check(k *checker, listen string) {
	switch {
	case a.Listen == "":
		k.problem("audit.listen", "missing; want an address such as :9443")
	case !isListenAddress(a.Listen):
		k.problem("audit.listen", "want an address such as :9443 or 127.0.0.1:9443, have %q", shorten(a.Listen))
	case a.Listen == listen && listen != "127.0.0.1:0":
		k.problem("audit.listen", "%q is the address of listen already; give it one of its own", shorten(a.Listen))
	}
	if a.TLS.Cert == "" || a.TLS.Key == "" {
		k.problem("audit.tls", "want cert and key, files in PEM with the certificate that the API server is shown, and with its private key")
	}
	if a.ClientCA == "" {
		k.problem("audit.clientCA", "missing; want a file in PEM with the certificates that may have signed a sender's")
	}
}
