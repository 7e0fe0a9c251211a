package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// typePrefix comes before the operation in a CloudEvent's type.
const typePrefix = "dev.kubecdc."

// presenter turns CloudEvents as exporter writes them into lines that a person can read. It remembers the last version
// of each object, to say in short what changed.
type presenter struct {
	last map[string]map[string]any // by uid
}

func NewPresenter() *presenter { return &presenter{last: map[string]map[string]any{}} }

// event is what the presenter reads of a CloudEvent.
type event struct {
	Type      string          `json:"type"`
	Time      time.Time       `json:"time"`
	Group     string          `json:"group"`
	Resource  string          `json:"resource"`
	Namespace string          `json:"namespace"`
	Name      string          `json:"name"`
	UID       string          `json:"uid"`
	Reason    string          `json:"reason"`
	Data      json.RawMessage `json:"data"`
}

// Line is the event on one line: time, operation, resource, object, and what changed in short.
func (p *presenter) Line(message []byte) (string, error) {
	var e event
	if err := json.Unmarshal(message, &e); err != nil {
		return "", fmt.Errorf("read an event: %w", err)
	}
	op := strings.TrimPrefix(e.Type, typePrefix)
	resource := e.Resource
	if e.Group != "" {
		resource += "." + e.Group
	}
	object := e.Name
	if e.Namespace != "" {
		object = e.Namespace + "/" + e.Name
	}
	text := fmt.Sprintf("%s  %-14s  %-22s  %-38s  %s", e.Time.Local().Format("15:04:05.000"), op, resource, object, p.summary(op, &e))
	return Plain(strings.TrimRight(text, " ")), nil
}

// summary says what changed since the version before.
func (p *presenter) summary(op string, e *event) string {
	if e.UID == "" {
		return frameSummary(e)
	}
	var object map[string]any
	if json.Unmarshal(e.Data, &object) != nil {
		object = nil // no last state
	}
	before := p.last[e.UID]
	p.last[e.UID] = object
	switch {
	case op == "deleted":
		delete(p.last, e.UID)
	case before != nil:
		return strings.Join(shorten(differences("", before, object)), ", ")
	}
	return ""
}

// frameSummary is what a snapshot's begin and end and a gap say of themselves.
func frameSummary(e *event) string {
	var data struct {
		ResourceVersion, LastDelivered string
		Replaced, Deleted, Synced      int
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return e.Reason
	}
	switch strings.TrimPrefix(e.Type, typePrefix) {
	case "snapshot.begin":
		return fmt.Sprintf("%s, at version %s", e.Reason, data.ResourceVersion)
	case "snapshot.end":
		return fmt.Sprintf("%s: %d replaced, %d deleted, %d synced", e.Reason, data.Replaced, data.Deleted, data.Synced)
	}
	return fmt.Sprintf("%s, between versions %s and %s", e.Reason, data.LastDelivered, data.ResourceVersion)
}

// maxDifferences is how many differences fit a line.
const maxDifferences = 3

// shorten leaves out what changes with every version, and what does not fit.
func shorten(all []string) []string {
	shown := slices.DeleteFunc(all, func(d string) bool {
		return strings.HasPrefix(d, "metadata.resourceVersion") || strings.HasPrefix(d, "metadata.generation") ||
			strings.HasPrefix(d, "status.observedGeneration")
	})
	if more := len(shown) - maxDifferences; more > 0 {
		shown = append(shown[:maxDifferences], fmt.Sprintf("and %d more", more))
	}
	return shown
}

// differences lists the paths at which two JSON values differ.
func differences(path string, before, after any) []string {
	a, aIsMap := before.(map[string]any)
	b, bIsMap := after.(map[string]any)
	if aIsMap && bIsMap {
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		var all []string
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			all = append(all, differences(strings.TrimPrefix(path+"."+key, "."), a[key], b[key])...)
		}
		return all
	}
	was, is := text(before), text(after)
	if was == is {
		return nil
	}
	return []string{fmt.Sprintf("%s: %s -> %s", path, ellipsis(was), ellipsis(is))}
}

// text is the value as compact JSON; an absent one is "none".
func text(value any) string {
	if value == nil {
		return "none"
	}
	encoded, err := json.Marshal(value)
	if err != nil { // it was decoded from JSON
		return err.Error()
	}
	return string(encoded)
}

// ellipsis cuts a value to what a line can bear.
func ellipsis(value string) string {
	const most = 24
	if runes := []rune(value); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return value
}
