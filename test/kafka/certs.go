package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// ClientUser is the common name of the client certificate, and so the user it
// stands for on MutualTLS.
const ClientUser = "client"

// Certificates are paths of PEM files.
type Certificates struct {
	// CA signed the brokers' certificates, which are for localhost and 127.0.0.1
	// (those of OtherName: for kafka.invalid), and the client's.
	CA                    string
	ClientCert, ClientKey string

	// ForeignCA signed a client certificate that no broker takes, and no broker's.
	ForeignCA               string
	ForeignCert, ForeignKey string

	server, otherName string // key, certificate and CA in one file, as Kafka has it
}

func createCertificates(dir string) (Certificates, error) {
	at := func(name string) string { return filepath.Join(dir, name) }
	c := Certificates{
		CA: at("ca.pem"), ClientCert: at("client.pem"), ClientKey: at("client-key.pem"),
		ForeignCA: at("foreign-ca.pem"), ForeignCert: at("foreign.pem"), ForeignKey: at("foreign-key.pem"),
		server: at("server.pem"), otherName: at("other-name.pem"),
	}
	ca, err := newPair(template("kubecdc test CA"), nil)
	if err != nil {
		return c, err
	}
	foreign, err := newPair(template("foreign CA"), nil)
	if err != nil {
		return c, err
	}
	server, other := template("broker"), template("other")
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	other.DNSNames = []string{"kafka.invalid"}
	files := map[string][]byte{c.CA: ca.certPEM, c.ForeignCA: foreign.certPEM}
	for _, leaf := range []struct {
		template  *x509.Certificate
		signer    *pair
		cert, key string // files; the same: both and the CA in one
	}{
		{server, ca, c.server, c.server},
		{other, ca, c.otherName, c.otherName},
		{template(ClientUser), ca, c.ClientCert, c.ClientKey},
		{template(ClientUser), foreign, c.ForeignCert, c.ForeignKey},
	} {
		made, err := newPair(leaf.template, leaf.signer)
		if err != nil {
			return c, err
		}
		files[leaf.key] = append(files[leaf.key], made.keyPEM...)
		files[leaf.cert] = append(files[leaf.cert], made.certPEM...)
		if leaf.cert == leaf.key {
			files[leaf.cert] = append(files[leaf.cert], leaf.signer.certPEM...)
		}
	}
	return c, writeFiles(dir, files)
}

func writeFiles(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write certificates: %w", err)
	}
	for name, data := range files {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return fmt.Errorf("write certificates: %w", err)
		}
	}
	return nil
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// pair is a key and its certificate.
type pair struct {
	cert            *x509.Certificate
	key             *ecdsa.PrivateKey
	certPEM, keyPEM []byte
}

// newPair signs template; without a signer it is a CA's own.
func newPair(template *x509.Certificate, signer *pair) (*pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, fmt.Errorf("create serial number: %w", err)
	}
	if signer == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageCertSign, nil
		signer = &pair{cert: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, &key.PublicKey, signer.key)
	if err != nil {
		return nil, fmt.Errorf("create certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return &pair{
		cert: template, key: key,
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	}, nil
}
