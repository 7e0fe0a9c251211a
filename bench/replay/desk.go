package replay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
)

// Desk is where a benchmark asks a server about its worlds.
type Desk struct {
	address Address
	client  *http.Client
}

// NewDesk returns a Desk of the server.
func NewDesk(address Address) *Desk {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(address.CA)
	return &Desk{address, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}}
}

// Counts is what the world was asked for until now.
func (d *Desk) Counts(ctx context.Context, w World) (counts Counts, err error) {
	response, err := d.ask(ctx, w, countsPath)
	if err != nil {
		return counts, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&counts); err != nil {
		return counts, fmt.Errorf("read the counts: %w", err)
	}
	return counts, nil
}

// Release lets the events of a held world go, to the watches that there are and to later ones.
func (d *Desk) Release(ctx context.Context, w World) error {
	response, err := d.ask(ctx, w, releasePath)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (d *Desk) ask(ctx context.Context, w World, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address.Host(w)+path, nil)
	if err != nil {
		return nil, fmt.Errorf("build a request: %w", err)
	}
	response, err := d.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the server for %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("ask the server for %s: %s", path, response.Status)
	}
	return response, nil
}
