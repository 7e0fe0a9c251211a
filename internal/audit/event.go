package audit

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// Event is one audit event as the API server sends it (audit.k8s.io/v1, Event), less what nobody asks for. Its bodies
// are read by Judge alone, and nothing that is made of an Event has them.
type Event struct {
	Level        string             `json:"level"`
	ID           string             `json:"auditID"`
	Stage        string             `json:"stage"`
	RequestURI   string             `json:"requestURI"`
	Verb         string             `json:"verb"`
	User         User               `json:"user"`
	Impersonated *User              `json:"impersonatedUser"`
	SourceIPs    []string           `json:"sourceIPs"`
	UserAgent    string             `json:"userAgent"`
	Status       struct{ Code int } `json:"responseStatus"`
	Request      json.RawMessage    `json:"requestObject"`
	Response     json.RawMessage    `json:"responseObject"`
	Received     time.Time          `json:"requestReceivedTimestamp"`
	Completed    time.Time          `json:"stageTimestamp"`
	Annotations  map[string]string  `json:"annotations"`
	Object       struct {           // that was asked for
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Group       string `json:"apiGroup"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
}

// The verbs that write.
const (
	verbCreate           = "create"
	verbUpdate           = "update"
	verbPatch            = "patch"
	verbDelete           = "delete"
	verbDeleteCollection = "deletecollection"
)

// User is who asked, as the API server knows it.
type User struct {
	Name   string   `json:"username,omitempty"`
	UID    string   `json:"uid,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Parse reads one event.
func Parse(text []byte) (*Event, error) {
	e := &Event{}
	if err := json.Unmarshal(text, e); err != nil {
		return nil, fmt.Errorf("read an audit event: %w", err)
	}
	if e.ID == "" {
		return nil, fmt.Errorf("read an audit event: it has no auditID: send audit.k8s.io/v1")
	}
	return e, nil
}

// query is what stands after the "?" of the request. It is nil where that cannot be read.
func (e *Event) query() url.Values {
	_, text, _ := strings.Cut(e.RequestURI, "?")
	query, err := url.ParseQuery(text)
	if err != nil {
		return nil // and not what could be read
	}
	return query
}

// isDry says whether nothing was to be written. What cannot be read counts as dry.
func (e *Event) isDry() bool {
	query := e.query()
	if query == nil || len(query["dryRun"]) > 0 {
		return true
	}
	if e.Verb != verbDelete && e.Verb != verbDeleteCollection || len(e.Request) == 0 {
		return false
	}
	options, unique := scan.Fields(e.Request)
	var dry []string
	return !unique || options["dryRun"] != nil && (json.Unmarshal(options["dryRun"], &dry) != nil || len(dry) > 0)
}
