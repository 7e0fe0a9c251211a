package requests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
)

// limitsOf are those that a request asks for. Of what no server would take the error is a *control.RefusedError.
func limitsOf(asked *control.SnapshotRequest) (l change.Limits, err error) {
	if l.Namespace = asked.Namespace; l.Namespace != "" {
		if err := config.CheckNamespace(l.Namespace); err != nil || len(l.Namespace) > maxNamespace {
			return l, &control.RefusedError{Text: fmt.Sprintf("namespace %.70q cannot be one: want lower case letters, digits and -, 63 at most", l.Namespace)}
		}
	}
	if l.Name = asked.Name; l.Name != "" {
		if wrong := path.IsValidPathSegmentName(l.Name); len(l.Name) > maxName || len(wrong) > 0 {
			return l, &control.RefusedError{Text: fmt.Sprintf("name %.40q cannot be an object's: give a name as kubectl shows it", l.Name)}
		}
	}
	if len(asked.Selector) > maxSelector {
		return l, &control.RefusedError{Text: fmt.Sprintf("selector of %d bytes: want %d at most", len(asked.Selector), maxSelector)}
	}
	selector, err := labels.Parse(asked.Selector)
	if err != nil {
		return l, &control.RefusedError{Text: fmt.Sprintf("selector %.80q: %v: write it as kubectl does, such as app=web", asked.Selector, err)}
	}
	l.Selector = selector.String() // the same one for all ways to write it
	return l, nil
}

const (
	maxNamespace = 63   // that an API server takes
	maxName      = 253  // that it takes
	maxSelector  = 4096 // it is a part of a URL
)
