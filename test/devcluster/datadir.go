package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The users of the token file. limited has no rights of its own: bind roles to it.
const (
	adminUser   = "admin"
	limitedUser = "limited"
)

// dataDir holds all that must survive a restart: etcd's data, and the ports,
// keys and tokens without which a kubeconfig written earlier would be void.
type dataDir string

func openDataDir(path string) (dataDir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find data directory: %w", err)
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return "", fmt.Errorf("create data directory: %w", err)
	}
	return dataDir(abs), nil
}

func (d dataDir) path(name string) string { return filepath.Join(string(d), name) }

func (d dataDir) etcd() string       { return d.path("etcd") }
func (d dataDir) cert() string       { return d.path("apiserver.crt") }
func (d dataDir) certKey() string    { return d.path("apiserver.key") }
func (d dataDir) accountKey() string { return d.path("serviceaccount.key") }
func (d dataDir) tokens() string     { return d.path("tokens.csv") }

// port settles the port of one component: the one of the last run, else a free
// one. Two files rather than one, so that an etcd and an API server that start
// together do not overwrite each other's.
func (d dataDir) port(component role) (int, error) {
	known, err := d.knownPort(component)
	if !errors.Is(err, fs.ErrNotExist) {
		return known, err
	}
	free, err := freePort()
	if err != nil {
		return 0, err
	}
	return free, writeFile(d.portFile(component), []byte(strconv.Itoa(free)+"\n"))
}

func (d dataDir) portFile(component role) string { return d.path(string(component) + ".port") }

// knownPort is the port of the last run.
func (d dataDir) knownPort(component role) (int, error) {
	data, err := os.ReadFile(d.portFile(component))
	if err != nil {
		return 0, fmt.Errorf("read port of %s: %w", component, err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("read port of %s: %w; delete %s to have a new one picked", component, err, d.portFile(component))
	}
	return port, nil
}

// checkPort explains a taken port before a library does so in its own words.
func checkPort(component role, port int) error {
	l, err := net.Listen("tcp4", address(port))
	if err != nil {
		return fmt.Errorf("start %s: %w; is it running already?", component, err)
	}
	return l.Close()
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// freePort stays below the range from which operating systems take the local
// ports of outgoing connections. A port from that range could be lost to any
// client while the server is down, and a client that retries over loopback can
// even connect to itself there.
func freePort() (int, error) {
	const first, count, attempts = 20000, 10000, 100
	for range attempts {
		var random [2]byte
		rand.Read(random[:])
		port := first + (int(random[0])<<8|int(random[1]))%count
		if l, err := net.Listen("tcp4", address(port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find free port: %d of the ports %d to %d are taken", attempts, first, first+count-1)
}

// createSecrets makes the files that are missing.
func (d dataDir) createSecrets() error {
	if err := d.createCert(); err != nil {
		return err
	}
	if err := createFile(d.accountKey(), keyutil.MakeEllipticPrivateKeyPEM); err != nil {
		return err
	}
	return createFile(d.tokens(), func() ([]byte, error) {
		return fmt.Appendf(nil, "%s,%s,%s,system:masters\n%s,%s,%s\n",
			rand.Text(), adminUser, adminUser, rand.Text(), limitedUser, limitedUser), nil
	})
}

// createCert makes the serving certificate, which is good for a year, followed by
// the authority that signed it. The key is written first: a certificate that
// exists always has one.
func (d dataDir) createCert() error {
	return createFile(d.cert(), func() ([]byte, error) {
		cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, []string{"localhost"})
		if err != nil {
			return nil, err
		}
		return cert, writeFile(d.certKey(), key)
	})
}

// token returns the bearer token of one user.
func (d dataDir) token(user string) (string, error) {
	data, err := os.ReadFile(d.tokens())
	if err != nil {
		return "", fmt.Errorf("read tokens: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Split(strings.TrimSpace(line), ","); len(f) > 1 && f[1] == user {
			return f[0], nil
		}
	}
	return "", fmt.Errorf("read tokens: no user %q in %s; delete the file to have it made anew", user, d.tokens())
}

func createFile(path string, content func() ([]byte, error)) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	data, err := content()
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return writeFile(path, data)
}

// writeFile replaces path in one step: a reader, and a start after a kill -9,
// finds the old content or the new one, never a part.
func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
