package involved

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
)

// IsEvents says whether the resource is Events, of the core group or of events.k8s.io: both are the same objects.
func IsEvents(resource *change.Resource) bool {
	return resource.Name == "events" && (resource.Group == "" || resource.Group == "events.k8s.io")
}

// fieldOf is the field of an Event that names the object.
func fieldOf(events *change.Resource) string {
	if events.Group == "" {
		return "involvedObject"
	}
	return "regarding"
}

// Kind is that of an object, whatever the version.
type Kind struct{ Group, Kind string }

// reference names the object that an Event is about (v1.ObjectReference).
type reference struct {
	Kind
	key change.Key
	uid string
}

// referenceOf is what the Event names; false where it names nothing that an object could have as its name.
func referenceOf(events *change.Resource, event []byte) (reference, bool) {
	var proof scan.Proof
	proof.Prove(event, "")
	field := fieldOf(events)
	text := func(name string) string {
		token := proof.Find(field, name)
		if len(token) == 0 || token[0] != '"' {
			return ""
		}
		return string(scan.Text(token))
	}
	group, _, versioned := strings.Cut(text("apiVersion"), "/")
	if !versioned {
		group = ""
	}
	ref := reference{
		Kind: Kind{group, text("kind")}, key: change.Key{Namespace: text("namespace"), Name: text("name")}, uid: text("uid"),
	}
	return ref, ref.Kind.Kind != "" && isName(ref.key.Name)
}

// isName says whether an object may be called so: no name has a slash in it (apimachinery, path segment names).
func isName(name string) bool {
	return name != "" && len(name) <= change.MaxNamed && !strings.ContainsAny(name, "/%")
}
