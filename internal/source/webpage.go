package source

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// otherServer says with what a server answers that is no API server, such as another service's port, or a proxy's page
// of errors; "" where nothing tells that it is none. client-go has no error value for the first of the two.
func otherServer(err error) string {
	rest, found := strings.CutPrefix(err.Error(), "serializer for ")
	if kind, missing := strings.CutSuffix(rest, " doesn't exist"); found && missing {
		if strings.HasPrefix(kind, "text/html") {
			return "a web page"
		}
		return kind
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse && strings.HasPrefix(strings.TrimSpace(cause.Message), "<") {
			return fmt.Sprintf("a web page (status %d)", status.Status().Code)
		}
	}
	return ""
}
