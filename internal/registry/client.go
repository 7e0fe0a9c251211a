package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// Login is how a registry is reached.
type Login struct {
	URLs     []string // the first that answers counts
	User     string
	Password string
	Token    string // of a bearer
	TLS      TLS
	Agent    string // the exporter's name, in requests
}

// TLS is how the registry is known and how the client shows itself. The paths are of PEM files; the client's are read
// for each connection.
type TLS struct{ CA, Cert, Key, ServerName string }

// answerTime bounds one request.
const answerTime = 5 * time.Second

// Client asks a registry with the API of Confluent's. It may be used by several goroutines.
type Client struct{ sr *sr.Client }

// NewClient connects to nothing yet.
func NewClient(l Login) (*Client, error) {
	config, err := l.TLS.config()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, MaxIdleConns: 2, IdleConnTimeout: time.Minute,
		ResponseHeaderTimeout: answerTime,
	}
	options := []sr.ClientOpt{
		sr.URLs(l.URLs...), sr.UserAgent(l.Agent), sr.HTTPClient(&http.Client{Transport: transport, Timeout: answerTime}),
	}
	if l.User != "" {
		options = append(options, sr.BasicAuth(l.User, l.Password))
	}
	if l.Token != "" {
		options = append(options, sr.BearerToken(l.Token))
	}
	client, err := sr.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("make a client of the schema registry: %w", err)
	}
	return &Client{client}, nil
}

func (t TLS) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read kafka.registry.tls.ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read kafka.registry.tls.ca: %s holds no certificate in PEM form", t.CA)
		}
	}
	if t.Cert != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
			return &pair, err
		}
	}
	return config, nil
}

// Version is one version of a subject.
type Version struct {
	Number int
	ID     uint32
	Schema []byte
}

// sent is the text as it is sent. References are not used.
func sent(schema []byte) sr.Schema { return sr.Schema{Schema: string(schema), Type: sr.TypeAvro} }

// Latest is the newest version of the subject, nil where there is none.
func (c *Client) Latest(ctx context.Context, subject string) (*Version, error) {
	found, err := c.sr.SchemaByVersion(ctx, subject, -1)
	if isUnknown(err) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("read subject "+subject, err)
	}
	return &Version{Number: found.Version, ID: uint32(found.ID), Schema: []byte(found.Schema.Schema)}, nil
}

// Register makes the schema a version of the subject, unless it is one, and returns its id.
func (c *Client) Register(ctx context.Context, subject string, schema []byte) (id uint32, err error) {
	made, err := c.sr.RegisterSchema(ctx, subject, sent(schema), -1, -1)
	if err != nil {
		return 0, explain("register a version of subject "+subject, err)
	}
	return uint32(made), nil
}

// Find is the id of the very schema among the versions of the subject, false where it is none.
func (c *Client) Find(ctx context.Context, subject string, schema []byte) (id uint32, found bool, err error) {
	v, err := c.sr.LookupSchema(ctx, subject, sent(schema))
	if isUnknown(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, explain("look up a version of subject "+subject, err)
	}
	return uint32(v.ID), true, nil
}

// Schema is the one of the id.
func (c *Client) Schema(ctx context.Context, id uint32) ([]byte, error) {
	text, err := c.sr.SchemaByID(ctx, int(id))
	if err != nil {
		return nil, explain(fmt.Sprintf("read schema %d", id), err)
	}
	return []byte(text.Schema), nil
}

// SetCompatibility makes the level the subject's.
func (c *Client) SetCompatibility(ctx context.Context, subject, level string) error {
	var to sr.CompatibilityLevel
	if err := to.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("set the compatibility of subject %s: %w", subject, err)
	}
	for _, result := range c.sr.SetCompatibility(ctx, sr.SetCompatibility{Level: to}, subject) {
		if result.Err != nil {
			return explain("set the compatibility of subject "+subject, result.Err)
		}
	}
	return nil
}

// isUnknown says whether the registry has no such subject, version, or schema.
func isUnknown(err error) bool {
	var response *sr.ResponseError
	return errors.As(err, &response) && response.StatusCode == http.StatusNotFound && response.ErrorCode/100 == http.StatusNotFound
}
