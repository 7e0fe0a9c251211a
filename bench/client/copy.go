package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// Copy reads the watch and discards it: the limit of every client.
func Copy(ctx context.Context, spec Spec, meter *harness.Meter) error {
	config := spec.Config()
	if !spec.HTTP2 {
		config.NextProtos = []string{"http/1.1"}
	}
	body, err := openWatch(ctx, config)
	if err != nil {
		return err
	}
	defer body.Close()
	return discardEvents(body, spec.Events, meter)
}

func openWatch(ctx context.Context, config *rest.Config) (io.ReadCloser, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("build a client: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/pods?watch=true", nil)
	if err != nil {
		return nil, fmt.Errorf("build a request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("watch: %s", response.Status)
	}
	return response.Body, nil
}

// discardEvents looks for the end of the first event and then counts bytes: the events are of one length.
func discardEvents(body io.Reader, events int, meter *harness.Meter) error {
	buf := make([]byte, 64<<10)
	length := 0
	for read := 0; length == 0 || read < length*events; {
		n, err := body.Read(buf)
		if err != nil {
			return fmt.Errorf("read the watch: %w", err)
		}
		if length == 0 {
			if end := bytes.IndexByte(buf[:n], '\n'); end >= 0 {
				length = read + end + 1
				meter.Add(1)
			}
		}
		read += n
	}
	meter.Add(events - 1)
	return nil
}
