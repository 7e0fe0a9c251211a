// Package client runs clients of the replay server in processes of their own, and holds the one that all others are
// compared with: it reads a watch and discards it.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// Spec is what a client is to do.
type Spec struct {
	Host    string
	CA      []byte
	Events  int
	Size    int // of a message, for a client that reads none
	HTTP2   bool
	Profile string // a file; "" is none
	Target  string // where a client writes to that does more than read
}

// Client takes the spec's events and adds them to the meter. It returns when ctx ends, or on an error.
type Client func(ctx context.Context, spec Spec, meter *harness.Meter) error

// Measure makes a role of a client: it runs until all events are there, and replies with the measure.
func Measure(run Client) harness.Role {
	return func(ctx context.Context, text json.RawMessage, reply func(any) error) error {
		var spec Spec
		if err := json.Unmarshal(text, &spec); err != nil {
			return fmt.Errorf("read the spec: %w", err)
		}
		stopProfile, err := harness.StartProfile(spec.Profile)
		if err != nil {
			return err
		}
		meter := harness.NewMeter(spec.Events)
		if err := runToEnd(ctx, run, spec, meter); err != nil {
			return err
		}
		measured, err := meter.Measured()
		if err := errors.Join(err, stopProfile()); err != nil {
			return err
		}
		return reply(measured)
	}
}

// runToEnd runs the client until the meter has all events.
func runToEnd(ctx context.Context, run Client, spec Spec, meter *harness.Meter) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, spec, meter) }()
	select {
	case <-meter.Done():
		cancel()
		<-ended
		return nil
	case err := <-ended:
		return errors.Join(errors.New("the client ended before its last event"), err)
	}
}

// Config is the connection for the client. It refuses answers over another protocol than was meant.
func (s *Spec) Config() *rest.Config {
	config := &rest.Config{Host: s.Host, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA}}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return &protocolCheck{inner, s.protocol()} })
	return config
}

// protocol is the major version of HTTP that is meant.
func (s *Spec) protocol() int {
	if s.HTTP2 {
		return 2
	}
	return 1
}

// protocolCheck is a RoundTripper that fails where the server speaks another version of HTTP.
type protocolCheck struct {
	http.RoundTripper
	want int
}

func (c *protocolCheck) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil && response.ProtoMajor != c.want {
		response.Body.Close()
		return nil, fmt.Errorf("ask %s: it answers in %s, want version %d", r.URL.Host, response.Proto, c.want)
	}
	return response, err
}
