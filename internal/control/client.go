package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// addressName is the file in the state directory that says where the exporter listens: address, process id and token,
// with spaces between. One that an exporter left behind which was killed does no harm: it has another process's id, or
// nobody owns the directory. Only its owner may read it.
const addressName = "address"

// Announce writes where this process answers into its state directory, as host:port with a path or without, and returns
// what removes it.
func Announce(dir, address string, token Token) (withdraw func() error, err error) {
	path := filepath.Join(dir, addressName)
	text := fmt.Sprintf("%s %d %s\n", address, os.Getpid(), token.text)
	// Renamed into place: a reader finds all of it or nothing.
	// It is made anew, whatever mode one had that was there.
	err = os.Remove(path + ".new")
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = os.WriteFile(path+".new", []byte(text), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		err = fmt.Errorf("write the address into the state directory: %w", err)
	}
	return func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the address from the state directory: %w", err)
		}
		return nil
	}, err
}

// NotRunningError says that nobody owns the state directory.
type NotRunningError struct{ Dir string }

func (e *NotRunningError) Error() string {
	return fmt.Sprintf("no exporter runs with the state in %s: start it, or name its directory with --state-dir or its address with --server", e.Dir)
}

// Locate finds the exporter that owns the state directory. It returns a *NotRunningError where there is none.
func Locate(dir string) (*Client, error) {
	pid, running, err := checkpoint.Owner(dir)
	if err != nil {
		return nil, err
	}
	if !running {
		return nil, &NotRunningError{dir}
	}
	text, err := os.ReadFile(filepath.Join(dir, addressName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read where the exporter listens: %w", err)
	}
	part := strings.Fields(string(text)) // of an exporter of an earlier version two
	if len(part) < 2 || part[1] != strconv.Itoa(pid) {
		return nil, fmt.Errorf("process %d uses the state in %s but does not listen yet, or no longer: try again, or give its address with --server", pid, dir)
	}
	return newClient("http://"+dialable(part[0]), strings.Join(part[2:], "")), nil
}

// dialable turns the address of a listener, with a path or without, into one that can be connected to, over the
// loopback interface where the listener takes it.
func dialable(address string) string {
	host, path, _ := strings.Cut(address, "/")
	parsed, err := netip.ParseAddrPort(host)
	if err != nil || !parsed.Addr().IsUnspecified() {
		return address
	}
	return strings.TrimSuffix(net.JoinHostPort("127.0.0.1", strconv.Itoa(int(parsed.Port())))+"/"+path, "/")
}

// maxEvent is the longest line of an event, in bytes: the status of many streams is one.
const maxEvent = 64 << 20

// Event is a server-sent event (HTML standard, 9.2).
type Event struct {
	Name string
	Data []byte // valid until the next event
}

// Events yields what the exporter tells at /events, until ctx ends or the exporter does; that is the last error.
func (c *Client) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		response, err := c.send(ctx, "GET /events", nil)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, maxEvent)
		var event Event
		for lines.Scan() {
			name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
			switch string(name) {
			case "event":
				event.Name = string(value)
			case "data":
				event.Data = append(event.Data[:0], value...)
			case "":
				if !yield(event, nil) {
					return
				}
				event.Name = ""
			}
		}
		err = lines.Err()
		if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ended the connection")
		}
		yield(Event{}, fmt.Errorf("follow the exporter at %s: %w", c.base, err))
	}
}

// Running is what a running exporter says of itself on /statusz, as far as others need it.
type Running struct {
	Sinks   map[string]RunningSink `json:"sinks"`
	Streams map[string]struct {
		LastSnapshot LastSnapshot `json:"lastSnapshot"`
	} `json:"streams"`
}

// RunningSink is one of its sinks.
type RunningSink struct {
	State   string `json:"state"`
	Address string `json:"address"` // "" of an earlier version
}

// Running asks what the exporter does.
func (c *Client) Running(ctx context.Context) (*Running, error) {
	return ask[Running](ctx, c, "GET /statusz", nil)
}

// pollTime is how often Wait asks.
const pollTime = 200 * time.Millisecond

// maxLate is how often Wait looks for a comparison that /statusz does not show yet. It may never do: an exporter that
// was started again tells only of this life.
const maxLate = 10

// LastSnapshot is what /statusz tells of a stream's last complete comparison.
type LastSnapshot struct {
	Reason          change.Reason `json:"reason"`
	ResourceVersion string        `json:"resourceVersion"`
	change.Counts
	Time time.Time `json:"time"`
}

// Wait returns when every sink of the snapshot has acknowledged it to its end, with what /statusz tells of each stream
// then. A sink that is not there is waited for as long as ctx lives.
func (c *Client) Wait(ctx context.Context, snapshot *Snapshot) (map[string]LastSnapshot, error) {
	ticker := time.NewTicker(pollTime)
	defer ticker.Stop()
	for late := 0; ; {
		found, err := c.look(ctx, snapshot)
		if err != nil {
			return nil, err
		}
		if found != nil {
			isBefore := func(r LastSnapshot) bool { return r.Time.Before(snapshot.Time) } // that was asked for later
			late++
			if late > maxLate || !slices.ContainsFunc(slices.Collect(maps.Values(found)), isBefore) {
				return found, nil
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// StoppedError says that a part of the snapshot was stopped.
type StoppedError struct{ Stopped }

func (e *StoppedError) Error() string {
	return "the snapshot " + e.ID + " of " + e.Stream + " for sink " + e.Sink + " was stopped: its sink may have a part of it"
}

// look returns the streams' last comparisons, nil while some of the snapshot is owed.
func (c *Client) look(ctx context.Context, snapshot *Snapshot) (map[string]LastSnapshot, error) {
	list, err := c.Owed(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list.Stopped {
		if stopped := &list.Stopped[i]; snapshot.has(stopped.Owed) && !stopped.Time.Before(snapshot.Time) {
			return nil, &StoppedError{*stopped}
		}
	}
	if slices.ContainsFunc(list.Owed, snapshot.has) {
		return nil, nil
	}
	status, err := c.Running(ctx)
	if err != nil {
		return nil, err
	}
	last := map[string]LastSnapshot{}
	for _, name := range snapshot.Streams {
		last[name] = status.Streams[name].LastSnapshot
	}
	return last, nil
}

func (s *Snapshot) has(owed Owed) bool {
	return owed.Reason == string(change.Requested) && owed.Limits == s.Limits && slices.Contains(s.Streams, owed.Stream) && slices.Contains(s.Sinks, owed.Sink)
}

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
		return nil, &RefusedError{Text: "want an address such as http://127.0.0.1:8080"}
	}
	if parsed.Hostname() == "" {
		parsed.Host = "127.0.0.1" + parsed.Host
	}
	return newClient("http://"+parsed.Host, token), nil
}

// newClient asks directly, whatever proxy the environment names.
func newClient(base, token string) *Client {
	transport := &http.Transport{DialContext: (&net.Dialer{Timeout: connectTime}).DialContext, DisableKeepAlives: true}
	return &Client{base: base, http: &http.Client{Transport: transport}, token: Token{token}}
}

// Snapshot asks for a full snapshot. A *RefusedError names what could be asked.
func (c *Client) Snapshot(ctx context.Context, request SnapshotRequest) (*Snapshot, error) {
	return ask[Snapshot](ctx, c, "POST /snapshot", request)
}

// Steer stops, pauses or resumes snapshots. A *RefusedError names what could be.
func (c *Client) Steer(ctx context.Context, request SteerRequest) error {
	_, err := ask[SteerRequest](ctx, c, "POST /snapshot/steer", request)
	return err
}

// Replay asks for dead letters to be sent again, and waits for what becomes of them. A *RefusedError names what could
// be asked.
func (c *Client) Replay(ctx context.Context, request ReplayRequest) (*Replayed, error) {
	return ask[Replayed](ctx, c, "POST /deadletter/replay", request)
}

// Owed asks which snapshots are owed.
func (c *Client) Owed(ctx context.Context) (*OwedList, error) {
	return ask[OwedList](ctx, c, "GET /snapshot", nil)
}

// Checkpoint asks for the saved state.
func (c *Client) Checkpoint(ctx context.Context) (*State, error) {
	return ask[State](ctx, c, "GET /checkpoint", nil)
}

// Inventory asks for objects. They come as they are read; after an error there are no more.
func (c *Client) Inventory(ctx context.Context, query Query) iter.Seq2[Object, error] {
	values := url.Values{}
	for key, value := range query.fields() {
		if *value != "" {
			values.Set(key, *value)
		}
	}
	return func(yield func(Object, error) bool) {
		response, err := c.send(ctx, "GET /inventory?"+values.Encode(), nil)
		if err != nil {
			yield(Object{}, err)
			return
		}
		defer response.Body.Close()
		decoder := json.NewDecoder(response.Body)
		for {
			var line struct {
				Object
				problem // that cut the answer short
			}
			err := decoder.Decode(&line)
			switch {
			case err == io.EOF:
				return
			case err == nil && line.Error != "":
				err = errors.New(line.Error)
			}
			if err != nil {
				err = fmt.Errorf("read the inventory of the exporter at %s: %w", c.base, err)
			}
			if !yield(line.Object, err) || err != nil {
				return
			}
		}
	}
}

// Cause is an error of the operating system without the path and the address, which the message has already.
func Cause(err error) error {
	if system, is := errors.AsType[*os.SyscallError](err); is {
		return system.Err
	}
	return err
}

// ask sends one question, with a document where it is not nil, and reads the answer's.
func ask[A any](ctx context.Context, c *Client, question string, document any) (*A, error) {
	var body []byte
	if document != nil {
		body, _ = json.Marshal(document) // of texts it cannot fail
	}
	response, err := c.send(ctx, question, body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := new(A)
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return nil, fmt.Errorf("read the answer of the exporter at %s: %w: check that an exporter listens there", c.base, err)
	}
	return answer, nil
}

// send asks the question, a method and a path. It returns an answer that is no error; the caller closes its body.
func (c *Client) send(ctx context.Context, question string, body []byte) (*http.Response, error) {
	method, path, _ := strings.Cut(question, " ")
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
		if network, is := errors.AsType[*url.Error](err); is {
			err = network.Err
		}
		return nil, fmt.Errorf("ask the exporter at %s: %w: check that it runs and listens there", c.base, Cause(err))
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	var said problem
	err = json.NewDecoder(io.LimitReader(response.Body, maxRequest)).Decode(&said)
	switch {
	case err != nil || said.Error == "":
		return nil, fmt.Errorf("ask the exporter at %s: it answers %s: check that an exporter of this version listens there", c.base, response.Status)
	case response.StatusCode == http.StatusBadRequest:
		return nil, &RefusedError{Text: said.Error}
	}
	return nil, fmt.Errorf("ask the exporter at %s: %s", c.base, said.Error)
}
