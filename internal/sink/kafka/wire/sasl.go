package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/aws_msk_iam_v2"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kerr"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// newLogin looks its secret up for every connection. It is nil where there is nobody to log in.
func newLogin(options *SASL) sasl.Mechanism {
	switch {
	case options == nil:
		return nil
	case options.Mechanism == OAuthBearer:
		o := options.OAuth
		b := &bearer{options: o, config: clientcredentials.Config{TokenURL: o.TokenURL, ClientID: o.ClientID, Scopes: o.Scopes}}
		if o.Audience != "" {
			b.config.EndpointParams = url.Values{"audience": {o.Audience}}
		}
		return b
	case options.Mechanism == AWSMSKIAM:
		return &msk{region: options.Region}
	}
	return options
}

// Name is that of PLAIN or SCRAM.
func (s *SASL) Name() string { return s.Mechanism }

// Start logs in with a password.
func (s *SASL) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	password, err := secret(s.Password, s.PasswordFile)
	if err != nil {
		return nil, nil, &ConnectError{Class: Retriable, Remedy: "check kafka.sasl.passwordFile", Err: err}
	}
	var mechanism sasl.Mechanism = plain.Mechanism{Username: s.User, Password: password}
	if hash := map[string]scram.Algorithm{ScramSHA256: scram.SHA256, ScramSHA512: scram.SHA512}[s.Mechanism]; hash != nil {
		mechanism, err = scram.Mechanism(hash, s.User, password)
	}
	if err != nil {
		return nil, nil, &ConnectError{Class: Fatal, Remedy: "check kafka.sasl.user and kafka.sasl.password", Err: err}
	}
	return mechanism.Start(ctx)
}

func (s *SASL) check(encrypted bool) error {
	switch {
	case s.Mechanism == OAuthBearer:
		return s.OAuth.check()
	case s.Mechanism == AWSMSKIAM && !encrypted:
		return errors.New("kafka.sasl.mechanism AWS_MSK_IAM needs TLS: set kafka.tls")
	case s.Mechanism == AWSMSKIAM:
		return nil
	}
	return checkSecret("kafka.sasl.password", s.Password, s.PasswordFile)
}

// loginError finds the broker's judgement of a login, which kafka-go returns as an error of the connection.
func loginError(options *SASL, err error) error {
	var code kafka.Error
	if !errors.As(err, &code) {
		return nil
	}
	switch int16(code) {
	case kerr.SaslAuthenticationFailed.Code, kerr.UnsupportedSaslMechanism.Code, kerr.IllegalSaslState.Code:
	default:
		return nil
	}
	message := strings.TrimPrefix(err.Error(), code.Error())
	return &Error{Code: int16(code), Message: strings.TrimPrefix(message, ": "), Request: options.request(), Needs: options.needs()}
}

// tokenMargin is how long a token must still be good for a connection to be made with it.
const tokenMargin = 30 * time.Second

// bearer is OAUTHBEARER (RFC 7628, KIP-255).
type bearer struct {
	options *OAuth

	mu     sync.Mutex               // held while a token is asked for: one request for all connections
	config clientcredentials.Config // knows how the server wants the secret, once it was asked
	token  *oauth2.Token
}

func (b *bearer) Name() string { return OAuthBearer }

// Start sends the client's first message of RFC 7628 section 3.1, with the extensions of KIP-342.
func (b *bearer) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	token, err := b.fresh(ctx)
	if err != nil {
		return nil, nil, b.tokenError(err)
	}
	text := "n,,\x01auth=Bearer " + token + "\x01"
	for _, name := range slices.Sorted(maps.Keys(b.options.Extensions)) {
		text += name + "=" + b.options.Extensions[name] + "\x01"
	}
	return b, []byte(text + "\x01"), nil
}

// Next sees the broker's judgement: nothing is yes, and everything else is JSON with the reason.
func (b *bearer) Next(_ context.Context, challenge []byte) (bool, []byte, error) {
	if len(challenge) == 0 {
		return true, nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.token = nil // the next connection asks for another one
	return false, nil, &Error{Code: kerr.SaslAuthenticationFailed.Code, Message: "the broker refuses the token: " + string(challenge),
		Request: "log in to Kafka with " + OAuthBearer,
		Needs:   "kafka.sasl.oauth.scopes and kafka.sasl.oauth.audience against the broker's sasl.oauthbearer.expected.audience and sasl.oauthbearer.expected.issuer, and its sasl.oauthbearer.jwks.endpoint.url"}
}

// fresh is a token that is good for a while, from memory if possible.
func (b *bearer) fresh(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.token != nil && (b.token.Expiry.IsZero() || time.Until(b.token.Expiry) > tokenMargin) {
		return b.token.AccessToken, nil
	}
	password, err := secret(b.options.ClientSecret, b.options.ClientSecretFile)
	if err != nil {
		return "", err
	}
	security, err := b.options.security()
	if err != nil {
		return "", err
	}
	// It keeps no connection: tokens are asked for once in a while.
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: security, DisableKeepAlives: true, ForceAttemptHTTP2: true}}
	b.config.ClientSecret = password
	token, err := b.config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if err != nil {
		return "", err
	}
	b.token = token
	return token.AccessToken, nil
}

// tokenError says whether the token server is not there or does not want us.
func (b *bearer) tokenError(err error) error {
	failure := &ConnectError{Class: Retriable, Remedy: "check kafka.sasl.oauth.tokenUrl, and that the server is up",
		Err: fmt.Errorf("get a token from %s: %w", b.options.TokenURL, err)}
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode >= 400 && refused.Response.StatusCode < 500 && refused.Response.StatusCode != http.StatusTooManyRequests:
		failure.Class = Fatal
		failure.Remedy = "check kafka.sasl.oauth.clientId, kafka.sasl.oauth.clientSecret, kafka.sasl.oauth.scopes and kafka.sasl.oauth.tokenUrl"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		failure.Class = Fatal
		failure.Remedy = "set kafka.sasl.oauth.ca to a file with the authority of the token server's certificate, and use a name in that in kafka.sasl.oauth.tokenUrl"
	}
	return failure
}

// security is that of connections to the token server.
func (o *OAuth) security() (*tls.Config, error) {
	return (&sink.TLS{CAFile: o.CAFile}).Config("kafka.sasl.oauth")
}

func (o *OAuth) check() error {
	var problems []error
	if u, err := url.Parse(o.TokenURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		problems = append(problems, errors.New(`kafka.sasl.oauth.tokenUrl is no URL: write it as "https://host/token"`))
	}
	_, err := o.security()
	problems = append(problems, checkSecret("kafka.sasl.oauth.clientSecret", o.ClientSecret, o.ClientSecretFile), err)
	for name, value := range o.Extensions {
		if name == "" || name == "auth" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || strings.Contains(value, "\x01") {
			problems = append(problems, fmt.Errorf("kafka.sasl.oauth.extensions: %q is not a name of letters other than \"auth\", with a printable value", name))
		}
	}
	return errors.Join(problems...)
}

// msk is AWS_MSK_IAM, with the credentials that AWS's SDK finds: environment, shared files, web identity, instance.
type msk struct {
	region string

	mu        sync.Mutex
	mechanism *aws_msk_iam_v2.Mechanism
}

func (m *msk) Name() string { return AWSMSKIAM }

// Start reads AWS's configuration at the first connection; its credentials renew themselves after that.
func (m *msk) Start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mechanism == nil {
		// no goroutine stays
		client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
		loaded, err := config.LoadDefaultConfig(ctx, config.WithRegion(m.region), config.WithHTTPClient(client))
		if err != nil {
			return nil, nil, &ConnectError{Class: Retriable, Remedy: "check the AWS configuration: AWS_PROFILE, AWS_CONFIG_FILE", Err: err}
		}
		if loaded.Region == "" {
			return nil, nil, &ConnectError{Class: Fatal, Remedy: "set kafka.sasl.region, or AWS_REGION", Err: errors.New("the AWS region is not known")}
		}
		m.mechanism = aws_msk_iam_v2.NewMechanism(loaded)
	}
	session, first, err := m.mechanism.Start(ctx)
	if err != nil {
		err = &ConnectError{Class: Retriable, Err: err,
			Remedy: "check that the pod has AWS credentials: a service account with a role, an instance profile, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"}
	}
	return session, first, err
}

// SASL says who the client is.
type SASL struct {
	Mechanism      string // one of the following
	User, Password string // for PLAIN and SCRAM
	PasswordFile   string // instead of Password; read again for every connection, a newline at its end is cut off
	OAuth          *OAuth // for OAUTHBEARER
	Region         string // for AWS_MSK_IAM; "" is that of the AWS configuration (AWS_REGION, profile)
}

// The values of SASL.Mechanism.
const (
	Plain       = "PLAIN"
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
	OAuthBearer = "OAUTHBEARER"
	AWSMSKIAM   = "AWS_MSK_IAM"
)

// OAuth is where tokens come from: the client credentials grant of RFC 6749 section 4.4. A token is used for all
// connections until shortly before it expires.
type OAuth struct {
	TokenURL               string
	ClientID, ClientSecret string
	ClientSecretFile       string // instead of ClientSecret; read again for every token
	Scopes                 []string
	Audience               string            // sent as "audience", which some servers ask for
	CAFile                 string            // of TokenURL; "" is the system's authorities
	Extensions             map[string]string // SASL extensions (KIP-342), such as Confluent Cloud's logicalCluster
}

func (s *SASL) request() string {
	switch {
	case s == nil:
		return "connect to Kafka"
	case s.User == "":
		return "log in to Kafka with " + s.Mechanism
	}
	return fmt.Sprintf("log in to Kafka as %s with %s", s.User, s.Mechanism)
}

// needs names the settings that a wrong login comes from.
func (s *SASL) needs() string {
	switch {
	case s == nil:
		return "kafka.sasl"
	case s.Mechanism == OAuthBearer:
		return "kafka.sasl.oauth.clientId, kafka.sasl.oauth.scopes"
	case s.Mechanism == AWSMSKIAM:
		return "the AWS credentials and their policy (kafka-cluster:Connect), kafka.sasl.region"
	case s.PasswordFile != "":
		return "kafka.sasl.user, kafka.sasl.passwordFile"
	}
	return "kafka.sasl.user, kafka.sasl.password"
}

// secret is the value itself, or the content of a file.
func secret(value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

func checkSecret(name, value, file string) error {
	content, err := secret(value, file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if content == "" {
		return fmt.Errorf("%s: %s is empty", name, file)
	}
	return nil
}

// TLS is that of connections to brokers. The files are read again for every one, so they can be renewed.
type TLS = sink.TLS

// handshake encrypts a connection to a broker at an address.
func handshake(ctx context.Context, security *TLS, raw net.Conn, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	config, err := security.Config("kafka.tls")
	if err != nil {
		// They may be in the middle of being replaced.
		return nil, &ConnectError{Address: address, Class: Retriable, Err: err, Remedy: "check the files"}
	}
	config.ServerName = cmp.Or(config.ServerName, host)
	conn := tls.Client(raw, config)
	switch err := conn.HandshakeContext(ctx); {
	case errors.Is(err, io.EOF): // a broker takes what it cannot read for a request that is too large, and hangs up
		return nil, &ConnectError{address, "remove kafka.tls where the listener has no TLS, and check that the broker is up", Retriable, err}
	case err != nil:
		return nil, connectError(address, err)
	}
	return conn, nil
}
