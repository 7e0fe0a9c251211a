package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kubecdc/kubecdc/internal/change"
)

// OpenAPI has the document with the schemas of a resource's group and version read while it comes.
func (a *Access) OpenAPI(ctx context.Context, resource change.Resource, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	body, err := a.asker.Get().AbsPath("/openapi/v3/"+openAPIPath(resource)).SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return err
	}
	return errors.Join(read(body), body.Close())
}

// openAPIPath is where the document of the resource's group and version is.
func openAPIPath(resource change.Resource) string {
	if resource.Group == "" {
		return "api/" + resource.Version
	}
	return "apis/" + resource.Group + "/" + resource.Version
}

// OpenAPIIndex says which documents there are.
type OpenAPIIndex map[string]string

// Hash tells the document of the resource's group and version from what it was before and may become: the server's
// words. There is none where it is "".
func (i OpenAPIIndex) Hash(resource change.Resource) string { return i[openAPIPath(resource)] }

// OpenAPIIndex asks which documents there are.
func (a *Access) OpenAPIIndex(ctx context.Context) (OpenAPIIndex, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	text, err := a.asker.Get().AbsPath("/openapi/v3").SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("ask which schemas there are (/openapi/v3): %w", ExplainServerError(a.host, err))
	}
	var said struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"` // with the hash
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, fmt.Errorf("read which schemas there are (/openapi/v3): %w", err)
	}
	index := OpenAPIIndex{}
	for path, at := range said.Paths {
		index[path] = at.URL
	}
	return index, nil
}
