package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// connectTime is how long a connection may take: the exporter is on this host, or behind a tunnel.
const connectTime = 5 * time.Second

// Client asks a running exporter.
type Client struct {
	base  string // without a slash at its end
	http  *http.Client
	token Token
}

// NewClient returns a client for an address such as http://127.0.0.1:8080 or 127.0.0.1:8080, which shows the token.
func NewClient(server, token string) (*Client, error) {
	text := server
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" || parsed.User != nil || strings.Trim(parsed.Path, "/")+parsed.RawQuery != "" {
		return nil, &RefusedError{"want an address such as http://127.0.0.1:8080"}
	}
	if parsed.Hostname() == "" {
		parsed.Host = "127.0.0.1" + parsed.Host
	}
	client := newClient("http://" + parsed.Host)
	client.token = Token{token}
	return client, nil
}

// newClient asks directly, whatever proxy the environment names.
func newClient(base string) *Client {
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: connectTime}).DialContext, DisableKeepAlives: true}
	return &Client{base: base, http: &http.Client{Transport: transport}}
}

// Snapshot asks for a full snapshot. A *RefusedError names what could be asked.
func (c *Client) Snapshot(ctx context.Context, request SnapshotRequest) (*Snapshot, error) {
	answer := new(Snapshot)
	return answer, c.ask(ctx, http.MethodPost, "/snapshot", request, answer)
}

// Steer stops, pauses or resumes snapshots. A *RefusedError names what could be.
func (c *Client) Steer(ctx context.Context, request SteerRequest) error {
	return c.ask(ctx, http.MethodPost, "/snapshot/steer", request, new(SteerRequest))
}

// Replay asks for dead letters to be sent again, and waits for what becomes of them. A *RefusedError names what could
// be asked.
func (c *Client) Replay(ctx context.Context, request ReplayRequest) (*Replayed, error) {
	answer := new(Replayed)
	return answer, c.ask(ctx, http.MethodPost, "/deadletter/replay", request, answer)
}

// Owed asks which snapshots are owed.
func (c *Client) Owed(ctx context.Context) (*OwedList, error) {
	answer := new(OwedList)
	return answer, c.ask(ctx, http.MethodGet, "/snapshot", nil, answer)
}

// Checkpoint asks for the saved state.
func (c *Client) Checkpoint(ctx context.Context) (*State, error) {
	answer := new(State)
	return answer, c.ask(ctx, http.MethodGet, "/checkpoint", nil, answer)
}

// Inventory asks for objects. They come as they are read; after an error there are no more.
func (c *Client) Inventory(ctx context.Context, query Query) iter.Seq2[Object, error] {
	values := url.Values{}
	for key, value := range map[string]string{"resource": query.Resource, "namespace": query.Namespace, "name": query.Name, "uid": query.UID, "sink": query.Sink} {
		if value != "" {
			values.Set(key, value)
		}
	}
	return func(yield func(Object, error) bool) {
		response, err := c.send(ctx, http.MethodGet, "/inventory?"+values.Encode(), nil)
		if err != nil {
			yield(Object{}, err)
			return
		}
		defer response.Body.Close()
		decoder := json.NewDecoder(response.Body)
		for {
			object, err := readObject(decoder)
			if err == io.EOF {
				return
			}
			if err != nil {
				err = fmt.Errorf("read the inventory of the exporter at %s: %w", c.base, err)
			}
			if !yield(object, err) || err != nil {
				return
			}
		}
	}
}

// readObject returns io.EOF at the end, and the exporter's error where the answer was cut short.
func readObject(decoder *json.Decoder) (Object, error) {
	var line struct {
		Object
		problem
	}
	if err := decoder.Decode(&line); err != nil {
		return Object{}, err
	}
	if line.Error != "" {
		return Object{}, errors.New(line.Error)
	}
	return line.Object, nil
}

// ask sends one request, with a document where it is not nil, and reads the answer's.
func (c *Client) ask(ctx context.Context, method, path string, request, into any) error {
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			return err
		}
	}
	response, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("read the answer of the exporter at %s: %w: check that an exporter listens there", c.base, err)
	}
	return nil
}

// send returns an answer that is no error; the caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the exporter at %s: %w", c.base, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	c.token.show(request)
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	return nil, c.refused(response)
}

func (c *Client) unreachable(err error) error {
	var network *url.Error
	if errors.As(err, &network) {
		err = network.Err
	}
	var system *os.SyscallError
	if errors.As(err, &system) {
		err = system.Err
	}
	return fmt.Errorf("ask the exporter at %s: %w: check that it runs and listens there", c.base, err)
}

// refused reads an answer that is an error.
func (c *Client) refused(response *http.Response) error {
	var said problem
	err := json.NewDecoder(io.LimitReader(response.Body, maxRequest)).Decode(&said)
	switch {
	case err != nil || said.Error == "":
		return fmt.Errorf("ask the exporter at %s: it answers %s: check that an exporter of this version listens there", c.base, response.Status)
	case response.StatusCode == http.StatusBadRequest:
		return &RefusedError{said.Error}
	}
	return fmt.Errorf("ask the exporter at %s: %s", c.base, said.Error)
}
