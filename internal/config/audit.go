package config

// Audit is where the API server's audit webhook is received.
type Audit struct {
	Listen   string    `key:"listen"`
	TLS      ServerTLS `key:"tls"`
	ClientCA string    `key:"clientCA"`
}

// ServerTLS is what a server shows of itself. Both are files in PEM, and read for every connection.
type ServerTLS struct {
	Cert string `key:"cert"`
	Key  string `key:"key"`
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
