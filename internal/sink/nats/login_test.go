package nats

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/authority"
)

func writes(t *testing.T, options Options) {
	t.Helper()
	write(t, openSink(t, options), newMaker().Batch(3))
}

func refused(t *testing.T, options Options) {
	t.Helper()
	wantError(t, openError(t, options, ""), "connect to "+options.URL+
		": authorization violation: check user, password, token, nkey or credentials file of the sink")
}

func TestLogins(t *testing.T) {
	key, seed := userKey(t)
	_, other := userKey(t)
	nkey := func(seed []byte) func(*Options) { return func(o *Options) { o.NkeySeedFile = file(t, seed) } }
	for _, test := range []struct {
		server      func(*server.Options)
		wrong, good func(*Options)
	}{
		{func(o *server.Options) { o.Username, o.Password = "u", "p" }, func(*Options) {}, func(o *Options) { o.User, o.Password = "u", "p" }},
		{func(o *server.Options) { o.Username, o.Password = "u", "p" }, func(o *Options) { o.User, o.Password = "u", "wrong" }, nil},
		{func(o *server.Options) { o.Authorization = "sesame" }, func(o *Options) { o.Token = "wrong" }, func(o *Options) { o.Token = "sesame" }},
		{func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: key}} }, nkey(other), nkey(seed)},
	} {
		wrong := startServer(t, test.server).options()
		good := wrong
		test.wrong(&wrong)
		refused(t, wrong)
		if test.good != nil {
			test.good(&good)
			writes(t, good)
		}
	}
}

func userKey(t *testing.T) (public string, seed []byte) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	noError(t, err)
	public, _ = pair.PublicKey()
	seed, _ = pair.Seed()
	return public, seed
}

func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	noError(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestLoginWithCredentialsFile(t *testing.T) {
	operator, account, system := must(nkeys.CreateOperator()), must(nkeys.CreateAccount()), must(nkeys.CreateAccount())
	claims := jwt.NewOperatorClaims(must(operator.PublicKey()))
	claims.SystemAccount = must(system.PublicKey())
	resolver := &server.MemAccResolver{}
	for _, pair := range []nkeys.KeyPair{account, system} {
		public := must(pair.PublicKey())
		of := jwt.NewAccountClaims(public)
		if pair == account {
			of.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
		}
		noError(t, resolver.Store(public, must(of.Encode(operator))))
	}
	s := startServer(t, func(o *server.Options) {
		o.TrustedOperators = []*jwt.OperatorClaims{must(jwt.DecodeOperatorClaims(must(claims.Encode(operator))))}
		o.AccountResolver, o.SystemAccount = resolver, claims.SystemAccount
	})
	options := s.options()
	for _, signer := range []nkeys.KeyPair{must(nkeys.CreateAccount()), account} {
		public, seed := userKey(t)
		token := must(jwt.NewUserClaims(public).Encode(signer))
		one, two := options, options
		one.CredentialsFile = file(t, must(jwt.FormatUserConfig(token, seed)))
		two.CredentialsFile, two.NkeySeedFile = file(t, []byte(token)), file(t, seed)
		for _, options := range []Options{one, two} {
			if signer == account {
				writes(t, options)
			} else {
				refused(t, options)
			}
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// trusting makes the server ask clients for a certificate of the authority.
func trusting(ca *authority.Authority, first bool) func(*server.Options) {
	cert := must(tls.LoadX509KeyPair(ca.Pair("server")))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must(os.ReadFile(ca.File)))
	return func(o *server.Options) {
		o.TLSConfig = &tls.Config{
			Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		}
		o.TLSTimeout, o.TLSHandshakeFirst = 5, first
	}
}

func TestTLSVerifiesBothSides(t *testing.T) {
	for _, first := range []bool{false, true} {
		ca := authority.New(t, t.TempDir(), "test CA")
		s := startServer(t, trusting(ca, first))
		options := s.options()
		good := sink.TLS{CAFile: ca.File}
		good.CertFile, good.KeyFile = ca.Pair("client")
		options.TLSFirst = first

		const remedy = ": check CA file, server name and client certificate of the sink"
		bad := good
		bad.CAFile = authority.New(t, t.TempDir(), "test CA").File
		options.TLS = &bad
		err := openError(t, options, "")
		wantError(t, err, "connect to "+options.URL+": tls error: tls: failed to verify certificate: x509: certificate signed by unknown authority "+
			"(possibly because of \"x509: ECDSA verification failure\" while trying to verify candidate authority certificate \"test CA\")"+remedy)

		bad = good
		bad.ServerName = "nats.prod"
		wantError(t, openError(t, options, ""), "connect to "+options.URL+
			": tls error: tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match nats.prod"+remedy)

		bad = good
		bad.CertFile, bad.KeyFile = "", ""
		wantError(t, openError(t, options, ""), "connect to "+options.URL+": remote error: tls: certificate required"+remedy)

		options.TLS = &good
		writes(t, options)
	}
}

// TestWebsocket goes through what lets only HTTP pass, with and without TLS.
func TestWebsocket(t *testing.T) {
	ca := authority.New(t, t.TempDir(), "test CA")
	for _, secure := range []bool{false, true} {
		s := startServer(t, func(o *server.Options) {
			o.Websocket = server.WebsocketOpts{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoTLS: !secure}
			o.Username, o.Password = "u", "p"
			if secure {
				o.Websocket.TLSConfig = &tls.Config{Certificates: []tls.Certificate{must(tls.LoadX509KeyPair(ca.Pair("server")))}}
			}
		})
		options := s.options()
		options.URL = s.WebsocketURL()
		if secure {
			options.TLS = &sink.TLS{CAFile: ca.File}
		}
		refused(t, options)
		options.User, options.Password = "u", "p"
		writes(t, options)
	}
}

func TestTLSIsNotLeftOutWhereItIsAskedFor(t *testing.T) {
	s := startServer(t)
	options := s.options()
	options.TLS = &sink.TLS{}
	wantError(t, openError(t, options, ""), "connect to "+options.URL+
		": secure connection not available: switch TLS on in the server, or off in the sink")
}
