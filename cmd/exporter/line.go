package main

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/decode"
)

// tailLine is one change as exporter tail shows it, and with -o json its document.
type tailLine struct {
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

func lineOf(c *decode.Change) *tailLine {
	return &tailLine{
		Time: c.Time, Op: c.ID.Op.String(), Resource: c.ID.Resource, Namespace: c.ID.Key.Namespace, Name: c.ID.Key.Name,
		UID: c.ID.UID, ResourceVersion: c.ID.ResourceVersion, Reason: string(c.Reason),
	}
}

// tailFilter chooses lines; its zero value takes all.
type tailFilter struct {
	resources       []string // in lower case
	namespace, name string
	ops             []string
}

func (f *tailFilter) takes(l *tailLine) bool {
	plural, _, _ := strings.Cut(l.Resource, ".")
	if len(f.resources) > 0 && !slices.Contains(f.resources, l.Resource) && !slices.Contains(f.resources, plural) {
		return false
	}
	if f.namespace != "" && f.namespace != l.Namespace || len(f.ops) > 0 && !slices.Contains(f.ops, l.Op) {
		return false
	}
	if f.name == "" {
		return true
	}
	matches, err := path.Match(f.name, l.Name)
	return err == nil && matches || f.name == l.Name
}
