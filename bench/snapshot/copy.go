package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"

	"k8s.io/client-go/rest"

	"github.com/kubecdc/kubecdc/bench/harness"
)

// pageSize is the exporter's.
const pageSize = 500

// copySpec is what a client is to read.
type copySpec struct {
	Host    string
	CA      []byte
	Objects int
}

func (s *copySpec) config() *rest.Config {
	return &rest.Config{Host: s.Host, TLSClientConfig: rest.TLSClientConfig{CAData: s.CA}}
}

// copyRole reads the list as the exporter asks for it, in pages over HTTP/1.1, and discards it: the limit of a
// snapshot.
func copyRole(ctx context.Context, text json.RawMessage, reply func(any) error) error {
	var spec copySpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("read the spec: %w", err)
	}
	config := spec.config()
	config.NextProtos = []string{"http/1.1"}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	c := &copier{client: client, url: spec.Host + "/api/v1/pods?limit=", buf: make([]byte, 64<<10)}
	first, err := c.page(ctx, 1, "")
	if err != nil {
		return err
	}
	meter := harness.NewMeter(spec.Objects + 1)
	meter.Add(1)
	left := spec.Objects
	for query := "&resourceVersionMatch=Exact&resourceVersion=" + first.version; query != ""; {
		p, err := c.page(ctx, pageSize, query)
		if err != nil {
			return err
		}
		n := min(pageSize, left)
		meter.Add(n)
		left -= n
		query = ""
		if p.next != "" {
			query = "&continue=" + p.next
		}
	}
	if left > 0 {
		return fmt.Errorf("copy the list: it ended %d objects early", left)
	}
	measured, err := meter.Measured()
	if err != nil {
		return err
	}
	return reply(measured)
}

// copier reads pages.
type copier struct {
	client *http.Client
	url    string
	buf    []byte
}

// head is what the metadata of a page says.
type head struct{ version, next string }

// page reads one page. The metadata of Pods is in front of the items.
func (c *copier) page(ctx context.Context, limit int, query string) (head, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+fmt.Sprint(limit)+query, nil)
	if err != nil {
		return head{}, fmt.Errorf("build a request: %w", err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return head{}, fmt.Errorf("list: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 1 {
		return head{}, fmt.Errorf("list: %s over %s", response.Status, response.Proto)
	}
	n, err := io.ReadAtLeast(response.Body, c.buf, 256)
	if err != nil {
		return head{}, fmt.Errorf("read a page: %w", err)
	}
	h := readHead(c.buf[:n])
	for err == nil {
		_, err = response.Body.Read(c.buf)
	}
	if !errors.Is(err, io.EOF) {
		return head{}, fmt.Errorf("read a page: %w", err)
	}
	return h, nil
}

func readHead(text []byte) head {
	text, _, _ = bytes.Cut(text, []byte(`"items"`))
	find := func(name string) string {
		match := regexp.MustCompile(`"` + name + `":"([^"]*)"`).FindSubmatch(text)
		if match == nil {
			return ""
		}
		return string(match[1])
	}
	return head{version: find("resourceVersion"), next: find("continue")}
}
