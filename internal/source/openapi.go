package source

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
)

// OpenAPI is the document with the schemas of a resource's group and version.
func (a *Access) OpenAPI(ctx context.Context, resource change.Resource) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	path := []string{"/openapi/v3/apis", resource.Group, resource.Version}
	if resource.Group == "" {
		path = []string{"/openapi/v3/api", resource.Version}
	}
	return a.asker.Get().AbsPath(path...).SetHeader("Accept", "application/json").Do(ctx).Raw()
}
