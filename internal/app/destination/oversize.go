package destination

import (
	"fmt"
	"strings"

	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/transform"
)

// oversizeOf is what becomes of a record that is too large for the sink.
func oversizeOf(s *config.Sink) (listener.Oversize, error) {
	o := listener.Oversize{Reject: s.Rejects()}
	if !s.Trims() {
		return o, nil
	}
	paths := append([]string{".metadata.managedFields", transform.LastApplied}, s.Trim...)
	for _, path := range paths {
		cut, err := transform.New(transform.Rules{Drop: []string{path}}, transform.Key{Secret: []byte("no hash is made")})
		if err != nil {
			return o, fmt.Errorf("trim %s", strings.TrimPrefix(err.Error(), "drop "))
		}
		o.Trims = append(o.Trims, listener.Trim{Path: path, Cut: func(object []byte) ([]byte, error) { return cut.Apply(nil, object, transform.Owner{}) }})
	}
	return o, nil
}
