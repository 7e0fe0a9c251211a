package console

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/decode"
)

// Line is one change as exporter tail shows it, and with -o json its document.
type Line struct {
	Time            time.Time    `json:"time"`
	Op              string       `json:"op"`
	Resource        string       `json:"resource"`
	Namespace       string       `json:"namespace,omitempty"`
	Name            string       `json:"name,omitempty"`
	UID             string       `json:"uid,omitempty"`
	ResourceVersion string       `json:"resourceVersion,omitempty"`
	Reason          string       `json:"reason,omitempty"`
	Diff            []difference `json:"diff,omitempty"`

	ID                string          `json:"id,omitempty"`
	Snapshot          string          `json:"snapshot,omitempty"`
	FinalStateUnknown bool            `json:"finalStateUnknown,omitempty"`
	Trimmed           string          `json:"trimmed,omitempty"`
	BeforeOmitted     bool            `json:"beforeOmitted,omitempty"`
	Replayed          string          `json:"replayed,omitempty"`
	Changed           json.RawMessage `json:"changed,omitempty"` // pointers of what differs
	ChangedCut        bool            `json:"changedCut,omitempty"`
	Actor             json.RawMessage `json:"actor,omitempty"`    // the newest entries of managedFields
	Involved          json.RawMessage `json:"involved,omitempty"` // what is known of the object that an Event is about
	Object            json.RawMessage `json:"object,omitempty"`   // of a Secret what people are shown
	Patch             json.RawMessage `json:"patch,omitempty"`    // what changed since version Base, in the place of object; none of a Secret
	Base              string          `json:"base,omitempty"`
	Data              json.RawMessage `json:"data,omitempty"` // what a snapshot's begin and end and a gap say of themselves
}

func lineOf(c *decode.Change) *Line {
	line := &Line{
		ID: c.ID.String(), Snapshot: c.Snapshot, FinalStateUnknown: c.FinalStateUnknown, Object: shownObject(c), Data: c.Data, Time: c.Time, Op: c.ID.Op.String(), Resource: c.ID.Resource, Namespace: c.ID.Key.Namespace, Name: c.ID.Key.Name,
		UID: c.ID.UID, ResourceVersion: c.ID.ResourceVersion, Reason: string(c.Reason),
		Trimmed: c.Trimmed, BeforeOmitted: c.BeforeOmitted, Replayed: string(c.Replayed), Actor: c.Actor, Involved: c.Involved, Changed: c.Changed, ChangedCut: c.ChangedCut,
		Base: c.Base,
	}
	// A patch of a Secret may have its values anywhere, and that of a very deep object is deeper than JSON is read.
	if !isSecret(c.ID.Resource) && json.Valid(c.Patch) {
		line.Patch = c.Patch
	}
	if c.ID.Op == change.Actor {
		line.Resource, line.UID = c.Of.Resource, c.Of.UID
	}
	return line
}

// shownObject is the record's, without values of a Secret.
func shownObject(c *decode.Change) json.RawMessage {
	if c.Object == nil || !isSecret(c.ID.Resource) {
		return c.Object
	}
	hidden, err := json.Marshal(hideSecret(nil, parseObject(c.Object)))
	if err != nil { // it was decoded from JSON
		return nil
	}
	return hidden
}

// by names the managers that changed the object last, "" where nobody says.
func (l *Line) by() string {
	if l.Op == change.Actor.String() {
		return byUser(l.Data)
	}
	var actors []struct{ Manager string }
	if json.Unmarshal(l.Actor, &actors) != nil || len(actors) == 0 {
		return ""
	}
	var managers []string
	for _, a := range actors {
		managers = append(managers, a.Manager)
	}
	return "by " + strings.Join(managers, ", ")
}

// byUser names the user of an actor's request, and how sure that is.
func byUser(data json.RawMessage) string {
	var told struct {
		Certainty    string
		User         struct{ Username string }
		Impersonated *struct{ Username string }
	}
	if json.Unmarshal(data, &told) != nil {
		return ""
	}
	by := "by " + told.User.Username
	if told.Impersonated != nil {
		by += " as " + told.Impersonated.Username
	}
	return by + ", " + told.Certainty
}

// summary says what changed in short, or what a frame or a gap is about.
func (l *Line) summary() string {
	if l.Op == change.Actor.String() {
		return l.by()
	}
	if l.UID != "" {
		return strings.Join(shorten(l.Diff), ", ")
	}
	var said struct {
		ResourceVersion, LastDelivered string
		Replaced, Deleted, Synced      int
		Limits                         change.Limits
	}
	if json.Unmarshal(l.Data, &said) != nil {
		return l.Reason
	}
	reason := l.Reason
	if limits := said.Limits.String(); limits != "" {
		reason += " of " + limits
	}
	switch l.Op {
	case change.SnapshotBegin.String():
		return fmt.Sprintf("%s, at version %s", reason, said.ResourceVersion)
	case change.SnapshotEnd.String():
		return fmt.Sprintf("%s: %d replaced, %d deleted, %d synced", reason, said.Replaced, said.Deleted, said.Synced)
	}
	return fmt.Sprintf("%s, between versions %s and %s", l.Reason, said.LastDelivered, said.ResourceVersion)
}

// What a summary shows of differences.
const (
	mostDifferences = 3
	mostShort       = 24 // characters of a value
)

// shorten leaves out what controllers count with, and what does not fit.
func shorten(all []difference) (shown []string) {
	for _, d := range all {
		if !strings.HasPrefix(d.Path, "status.observedGeneration") {
			shown = append(shown, fmt.Sprintf("%s: %s -> %s", d.Path, short(d.Old), short(d.New)))
		}
	}
	if more := len(shown) - mostDifferences; more > 0 {
		shown = append(shown[:mostDifferences], fmt.Sprintf("and %d more", more))
	}
	return shown
}

func short(value json.RawMessage) string {
	if value == nil {
		return "none"
	}
	return ellipsis(string(value), mostShort)
}

// ellipsis cuts a text to so many characters.
func ellipsis(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// Filter chooses lines; its zero value takes all.
type Filter struct {
	Resources       []string // in lower case
	Namespace, Name string
	Ops             []string
}

// takesResource is of the lines of one resource, whatever else is chosen.
func (f *Filter) takesResource(resource string) bool {
	plural, _, _ := strings.Cut(resource, ".")
	return len(f.Resources) == 0 || slices.Contains(f.Resources, resource) || slices.Contains(f.Resources, plural)
}

func (f *Filter) takes(l *Line) bool {
	if !f.takesResource(l.Resource) {
		return false
	}
	if f.Namespace != "" && f.Namespace != l.Namespace || len(f.Ops) > 0 && !slices.Contains(f.Ops, l.Op) {
		return false
	}
	if f.Name == "" {
		return true
	}
	matches, err := path.Match(f.Name, l.Name)
	return err == nil && matches || f.Name == l.Name
}
