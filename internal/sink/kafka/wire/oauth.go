package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go/sasl"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// tokenMargin is how long a token must still be good for a connection to be made with it.
const tokenMargin = 30 * time.Second

// bearer is OAUTHBEARER (RFC 7628, KIP-255).
type bearer struct {
	options *OAuth

	mu     sync.Mutex               // held while a token is asked for: one request for all connections
	config clientcredentials.Config // knows how the server wants the secret, once it was asked
	token  *oauth2.Token
}

func newBearer(options *OAuth) *bearer {
	b := &bearer{options: options}
	b.config = clientcredentials.Config{TokenURL: options.TokenURL, ClientID: options.ClientID, Scopes: options.Scopes}
	if options.Audience != "" {
		b.config.EndpointParams = url.Values{"audience": {options.Audience}}
	}
	return b
}

func (b *bearer) start(ctx context.Context) (sasl.StateMachine, []byte, error) {
	token, err := b.fresh(ctx)
	if err != nil {
		return nil, nil, b.tokenError(err)
	}
	return bearerSession{b}, b.options.message(token), nil
}

// message is the client's first of RFC 7628 section 3.1, with the extensions of KIP-342.
func (o *OAuth) message(token string) []byte {
	var text strings.Builder
	text.WriteString("n,,\x01auth=Bearer " + token + "\x01")
	for _, name := range slices.Sorted(maps.Keys(o.Extensions)) {
		text.WriteString(name + "=" + o.Extensions[name] + "\x01")
	}
	text.WriteString("\x01")
	return []byte(text.String())
}

type bearerSession struct{ of *bearer }

// Next sees the broker's judgement: nothing is yes, and everything else is JSON with the reason.
func (s bearerSession) Next(_ context.Context, challenge []byte) (bool, []byte, error) {
	if len(challenge) == 0 {
		return true, nil, nil
	}
	s.of.forget() // the next connection asks for another one
	return false, nil, &Error{Code: codeSASLAuthenticationFailed, Message: "the broker refuses the token: " + string(challenge),
		Request: "log in to Kafka with " + OAuthBearer,
		Needs:   "kafka.sasl.oauth.scopes and kafka.sasl.oauth.audience against the broker's sasl.oauthbearer.expected.audience and sasl.oauthbearer.expected.issuer, and its sasl.oauthbearer.jwks.endpoint.url"}
}

func (b *bearer) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.token = nil
}

// fresh is a token that is good for a while, from memory if possible.
func (b *bearer) fresh(ctx context.Context) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.token != nil && (b.token.Expiry.IsZero() || time.Until(b.token.Expiry) > tokenMargin) {
		return b.token.AccessToken, nil
	}
	token, err := b.grant(ctx)
	if err != nil {
		return "", err
	}
	b.token = token
	return token.AccessToken, nil
}

func (b *bearer) grant(ctx context.Context) (*oauth2.Token, error) {
	password, err := secret(b.options.ClientSecret, b.options.ClientSecretFile)
	if err != nil {
		return nil, err
	}
	client, err := b.options.client()
	if err != nil {
		return nil, err
	}
	b.config.ClientSecret = password
	return b.config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
}

// client keeps no connection: tokens are asked for once in a while.
func (o *OAuth) client() (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pool, err := readCA(o.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	return &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true,
		ForceAttemptHTTP2: true}}, nil
}

// tokenError says whether the token server is not there or does not want us.
func (b *bearer) tokenError(err error) error {
	failure := &loginFailure{Class: Retriable, Remedy: "check kafka.sasl.oauth.tokenUrl, and that the server is up",
		Err: fmt.Errorf("get a token from %s: %w", b.options.TokenURL, err)}
	var refused *oauth2.RetrieveError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	switch {
	case errors.As(err, &refused) && refused.Response.StatusCode >= 400 && refused.Response.StatusCode < 500 && refused.Response.StatusCode != http.StatusTooManyRequests:
		failure.Class = Fatal
		failure.Remedy = "check kafka.sasl.oauth.clientId, kafka.sasl.oauth.clientSecret, kafka.sasl.oauth.scopes and kafka.sasl.oauth.tokenUrl"
	case errors.As(err, &authority):
		failure.Class, failure.Remedy = Fatal, "set kafka.sasl.oauth.ca to a file with the authority of the token server's certificate"
	case errors.As(err, &hostname):
		failure.Class, failure.Remedy = Fatal, "use a name that is in the certificate in kafka.sasl.oauth.tokenUrl"
	}
	return failure
}

func (o *OAuth) check() error {
	var problems []error
	if u, err := url.Parse(o.TokenURL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		problems = append(problems, errors.New(`option SASL.OAuth.TokenURL (kafka.sasl.oauth.tokenUrl) is no URL: write it as "https://host/token"`))
	}
	problems = append(problems, checkSecret("SASL.OAuth.ClientSecret (kafka.sasl.oauth.clientSecret)", o.ClientSecret, o.ClientSecretFile))
	if o.CAFile != "" {
		if _, err := readCA(o.CAFile); err != nil {
			problems = append(problems, fmt.Errorf("option SASL.OAuth.CAFile (kafka.sasl.oauth.ca): %w", err))
		}
	}
	for name, value := range o.Extensions {
		if name == "" || name == "auth" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || strings.Contains(value, "\x01") {
			problems = append(problems, fmt.Errorf("option SASL.OAuth.Extensions (kafka.sasl.oauth.extensions): %q is not a name of letters other than \"auth\", with a printable value", name))
		}
	}
	return errors.Join(problems...)
}
