package registry

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/encode"
	"github.com/kubecdc/kubecdc/internal/format/typed"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// mostDecoders bounds how many schemas a reader keeps.
const mostDecoders = 1000

// Reader gives the messages of a log as they would be without a registry. What has no schema stays as it is.
type Reader struct {
	sink.Reader
	client   *Client
	keys     *avro.Schema
	decoders map[uint32]*typed.Decoder
	value    []byte
}

// NewReader reads the log of the reader.
func NewReader(of sink.Reader, client *Client) *Reader {
	keys := avro.MustParse(string(encode.KeySchema(&change.Resource{Kind: "Any"}))) // of all resources they are alike
	return &Reader{Reader: of, client: client, keys: keys, decoders: map[uint32]*typed.Decoder{}}
}

// Read is as in sink.Reader. It fails where the registry does not have a schema.
func (r *Reader) Read(ctx context.Context, each func(*sink.Stored) error) error {
	return r.Reader.Read(ctx, func(m *sink.Stored) error {
		if err := r.plain(ctx, m); err != nil {
			return fmt.Errorf("read %s: %w", m.Place, err)
		}
		return each(m)
	})
}

// plain makes the message JSON.
func (r *Reader) plain(ctx context.Context, m *sink.Stored) error {
	if _, body, err := encode.SchemaID(m.Key); err == nil {
		var key struct { // as the format debezium has it in JSON
			Namespace *string `avro:"namespace" json:"namespace"`
			Name      string  `avro:"name" json:"name"`
		}
		if rest, err := r.keys.Decode(body, &key); err != nil || len(rest) > 0 {
			return errors.New("its key is no namespace with a name")
		}
		m.Key, _ = json.Marshal(key) // of texts it cannot fail
	}
	id, body, err := encode.SchemaID(m.Value)
	if err != nil {
		return nil
	}
	decoder, err := r.decoder(ctx, id)
	if err != nil {
		return err
	}
	r.value, err = decoder.Append(r.value[:0], body)
	m.Value = r.value
	return err
}

// decoder is the one of the schema with the id.
func (r *Reader) decoder(ctx context.Context, id uint32) (*typed.Decoder, error) {
	if known := r.decoders[id]; known != nil {
		return known, nil
	}
	text, err := r.client.Schema(ctx, id)
	if err != nil {
		return nil, err
	}
	of, err := typed.ParseAvro(text)
	if err != nil {
		return nil, fmt.Errorf("schema %d: %w", id, err)
	}
	if len(r.decoders) >= mostDecoders {
		clear(r.decoders)
	}
	r.decoders[id] = typed.NewDecoder(of)
	return r.decoders[id], nil
}

// Login is how a registry is reached.
type Login struct {
	URLs     []string // the first that answers counts
	User     string
	Password string
	Token    string   // of a bearer
	TLS      sink.TLS // the client's files are read for each connection
	Agent    string   // the exporter's name, in requests
}

// answerTime bounds one request.
const answerTime = 5 * time.Second

// Client asks a registry with the API of Confluent's. It may be used by several goroutines.
type Client struct{ sr *sr.Client }

// NewClient connects to nothing yet.
func NewClient(l Login) (*Client, error) {
	t := &l.TLS
	config, err := (&sink.TLS{CAFile: t.CAFile, ServerName: t.ServerName}).Config("kafka.registry.tls")
	if err != nil {
		return nil, err
	}
	if t.CertFile != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
			return &pair, err
		}
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

// sent is the text as it is sent. References are not used.
func sent(schema []byte) sr.Schema { return sr.Schema{Schema: string(schema), Type: sr.TypeAvro} }

// Latest is the newest version of the subject, nil where there is none.
func (c *Client) Latest(ctx context.Context, subject string) (*sr.SubjectSchema, error) {
	found, err := c.sr.SchemaByVersion(ctx, subject, -1)
	if isUnknown(err) {
		return nil, nil
	}
	return &found, explain("read subject "+subject, err)
}

// Register makes the schema a version of the subject, unless it is one, and returns its id.
func (c *Client) Register(ctx context.Context, subject string, schema []byte) (id uint32, err error) {
	made, err := c.sr.RegisterSchema(ctx, subject, sent(schema), -1, -1)
	return uint32(made), explain("register a version of subject "+subject, err)
}

// Find is the id of the very schema among the versions of the subject, 0 where it is none.
func (c *Client) Find(ctx context.Context, subject string, schema []byte) (id uint32, err error) {
	v, err := c.sr.LookupSchema(ctx, subject, sent(schema))
	if isUnknown(err) {
		return 0, nil
	}
	return uint32(v.ID), explain("look up a version of subject "+subject, err)
}

// Schema is the one of the id.
func (c *Client) Schema(ctx context.Context, id uint32) ([]byte, error) {
	text, err := c.sr.SchemaByID(ctx, int(id))
	return []byte(text.Schema), explain(fmt.Sprintf("read schema %d", id), err)
}

// SetCompatibility makes the level the subject's.
func (c *Client) SetCompatibility(ctx context.Context, subject, level string) error {
	var to sr.CompatibilityLevel
	if err := to.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("set the compatibility of subject %s: %w", subject, err)
	}
	results := c.sr.SetCompatibility(ctx, sr.SetCompatibility{Level: to}, subject) // one for each subject
	return explain("set the compatibility of subject "+subject, results[0].Err)
}

// isUnknown says whether the registry has no such subject, version, or schema.
func isUnknown(err error) bool {
	var response *sr.ResponseError
	return errors.As(err, &response) && response.StatusCode == http.StatusNotFound && response.ErrorCode/100 == http.StatusNotFound
}

// Error is what a registry said, or that it said nothing.
type Error struct {
	Doing   string // with the subject
	Err     error  // with the registry's words
	Refused bool   // only a person can mend it
	Away    bool   // whatever is asked, the answer would be the same
}

func (e *Error) Error() string { return fmt.Sprintf("schema registry: %s: %v", e.Doing, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// maxWords bounds what is told of an answer.
const maxWords = 500

// explain makes an error of the client one that says what to do. nil stays nil.
func explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	var response *sr.ResponseError
	if !errors.As(err, &response) {
		var to *url.Error // with the address and, perhaps, a login in it
		if errors.As(err, &to) {
			err = to.Err
		}
		return &Error{Doing: doing, Err: fmt.Errorf("it does not answer: %w", err), Away: true}
	}
	words := response.Message
	if words == "" {
		words = strings.ToValidUTF8(string(response.Raw), "?")
	}
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "..."
	}
	e := &Error{Doing: doing, Err: fmt.Errorf("status %d: %s", response.StatusCode, words)}
	remedies := map[int]string{
		http.StatusUnauthorized: "correct user, password or token in kafka.registry",
		http.StatusForbidden:    "allow the exporter's user to read and to write the subject, or set register: false",
		http.StatusConflict: "the subject has versions that ours does not go with: give the topic another subject, " +
			"or lower the subject's compatibility",
		http.StatusUnprocessableEntity: "look into the registry's log",
		http.StatusNotFound:            "is kafka.registry.url the path of the API of Confluent's registry?",
	}
	code := response.StatusCode
	if remedy, known := remedies[code]; known {
		e.Err, e.Refused = fmt.Errorf("%w: %s", e.Err, remedy), true
	}
	e.Away = code >= 500 || code == http.StatusTooManyRequests
	return e
}

func isRefused(err error) bool {
	e, is := errors.AsType[*Error](err)
	return is && e.Refused
}

func isAway(err error) bool {
	e, is := errors.AsType[*Error](err)
	return is && e.Away
}
