package listener

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// keptAt10 is a store that keeps an object of version 10, as sink lake was told of it.
type keptAt10 struct{}

// Images is that of Images' store.
func (keptAt10) Images(stream string, _ change.Key) (change.Images, error) {
	if stream != "pods" {
		return nil, nil
	}
	return change.Images{{UID: "u", Version: "10", Object: []byte("{}"), Sinks: []string{"lake"}}}, nil
}

// TestI5WhatALogSaysIsUnknownWhereItIsNewer than what is kept: that is older than what the sink was told. What is as
// new is kept, and what other sinks were told is theirs.
func TestI5WhatALogSaysIsUnknownWhereItIsNewer(t *testing.T) {
	for said, isKept := range map[string]bool{"9": true, "10": true, "11": false} {
		images := &Images{store: keptAt10{}}
		item := checkpoint.Item{
			Kind: checkpoint.Told, Resource: "pods", Key: change.Key{Namespace: "shop", Name: "web"}, At: checkpoint.Point{History: 1, Version: said},
		}
		for sinkName, want := range map[string]bool{"lake": isKept, "bus": true} {
			unknown, err := images.unknown(sinkName, &item)
			if err != nil || (len(unknown) == 0) != want {
				t.Errorf("the log of %s says %s: unknown is %+v (%v)", sinkName, said, unknown, err)
			}
		}
	}
}
