package console

import (
	"path"
	"slices"
	"strings"
	"time"

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
}

func LineOf(c *decode.Change) *Line {
	return &Line{
		Time: c.Time, Op: c.ID.Op.String(), Resource: c.ID.Resource, Namespace: c.ID.Key.Namespace, Name: c.ID.Key.Name,
		UID: c.ID.UID, ResourceVersion: c.ID.ResourceVersion, Reason: string(c.Reason),
	}
}

// Filter chooses lines; its zero value takes all.
type Filter struct {
	Resources       []string // in lower case
	Namespace, Name string
	Ops             []string
}

func (f *Filter) Takes(l *Line) bool {
	plural, _, _ := strings.Cut(l.Resource, ".")
	if len(f.Resources) > 0 && !slices.Contains(f.Resources, l.Resource) && !slices.Contains(f.Resources, plural) {
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
