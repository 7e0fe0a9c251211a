package listener

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// nothingKept is a store that keeps no objects.
type nothingKept struct{}

// Object is that of Images' store.
func (nothingKept) Object(string, change.Key) (change.Image, bool, error) {
	return change.Image{}, false, nil
}

// TestI5WhatALogSaysIsForgottenWhereItIsNewer than what is kept: that is older than what the sink was told. What is as
// new is kept, and is Before of the sinks that were told as much.
func TestI5WhatALogSaysIsForgottenWhereItIsNewer(t *testing.T) {
	for said, isKept := range map[string]bool{"9": true, "10": true, "11": false} {
		images := NewImages(nil)
		images.store = nothingKept{}
		key := change.Key{Namespace: "shop", Name: "web"}
		stream := &change.Stream{Resource: change.Resource{Name: "pods"}}
		images.Note(&change.Record{
			Stream: stream, Op: change.Updated, Key: key, UID: "u", ResourceVersion: "10", Object: []byte("{}"), Keep: true,
		})
		at := func(version string) checkpoint.Point { return checkpoint.Point{History: 1, Version: version} }
		if err := images.forget(&checkpoint.Item{Kind: checkpoint.Told, Resource: "pods", Key: key, At: at(said)}); err != nil {
			t.Fatal(err)
		}
		image, found, err := images.Last("pods", key)
		if found != isKept || err != nil {
			t.Errorf("the log says %s: kept is %+v, %t, %v; want %t", said, image, found, err, isKept)
		}
		if isKept && (Has(checkpoint.Row{At: at("9")}, image.Version) || !Has(checkpoint.Row{At: at("12")}, image.Version)) {
			t.Error("it is Before of a sink that was told less, or not of one whose last change was withheld")
		}
	}
}
