package selection

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/source"
	"github.com/kubecdc/kubecdc/test/script"
)

// anything is an API server that serves whatever it is asked for.
type anything struct{}

func (anything) Resolve(name string) ([]change.Resource, error) {
	plural, group, _ := strings.Cut(name, ".")
	return []change.Resource{{Group: group, Version: "v1", Name: plural}}, nil
}

func (anything) Names() []string { return nil }

func (anything) LeftOut(string) []source.LeftOut { return nil }

// formsOf are the forms by the names of the streams: of objects that are kept, and of records that are stored on disk.
func formsOf(t *testing.T, text string) map[string]string {
	t.Helper()
	cfg, err := config.Parse("c.yaml", []byte(text), os.LookupEnv)
	must(t, err)
	chosen, errs := Choose(anything{}, cfg.Resources)
	must(t, errors.Join(errs...))
	key := transform.Key{Secret: []byte(cfg.RedactKey.Reveal() + "planted-key"), Comparable: cfg.Hash == "comparable", Cluster: cfg.Cluster}
	forms := map[string]string{}
	for i := range chosen.Streams {
		s, name := &chosen.Streams[i], chosen.Streams[i].Stream.String()
		kept, err := FormOf(s, key, cfg)
		must(t, err)
		today, err := TodayOf(s, key)
		must(t, err)
		must(t, AddInvolved(today, s, cfg))
		if strings.Contains(string(kept)+today.Form, "planted-key") || s.Configured.IsKept() != (len(kept) > 0) {
			t.Errorf("the form of %s has the key in it, or is one although nothing is kept: %q", name, kept)
		}
		forms["kept "+name], forms["stored "+name] = string(kept), today.Form
	}
	return forms
}

// TestI9WhatIsChosenOrShapedOtherwiseHasAnotherForm, so that what was kept before is forgotten, and what was stored is
// shaped again: no object that is no longer chosen, or is cut otherwise, comes out, also through an Event. What changes
// no object changes no form.
func TestI9WhatIsChosenOrShapedOtherwiseHasAnotherForm(t *testing.T) {
	script.Run(t, "testdata/forms.txt", func(text string) string {
		before, after, _ := strings.Cut(text, "---\n")
		was, is := formsOf(t, before), formsOf(t, after)
		others := slices.DeleteFunc(slices.Sorted(maps.Keys(is)), func(name string) bool { return is[name] == was[name] })
		return strings.Join(others, ", ")
	})
}

func TestOldObjectNeedsBeforeAndTheErrorSaysWhere(t *testing.T) {
	r := &config.Resource{Name: "pods", Filter: "oldObject == null"}
	const want = `resource "pods": compile filter: it uses oldObject, but these objects are not kept: add before: true`
	if err := checkShape(r); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	r.Before = true
	if err := checkShape(r); err != nil {
		t.Error(err)
	}
}
