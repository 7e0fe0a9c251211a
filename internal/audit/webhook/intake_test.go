package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/audit"
	"github.com/kubecdc/kubecdc/internal/change"
)

// pushed notes what is pushed.
type pushed struct{ ids []string }

func (p *pushed) Push(_ context.Context, rec *change.Record) error {
	p.ids = append(p.ids, rec.ID("u").String()+" "+rec.Sink)
	return nil
}

func (p *pushed) Drain(context.Context) error { return nil }

func TestABatchThatComesAgainIsPutInLineOnce(t *testing.T) {
	line := &pushed{}
	in := newIntake(t.Context(), Config{}, line)
	stream := change.Actors()
	rec := func(id, sink string) *change.Record {
		return &change.Record{Stream: &stream, Op: change.Actor, Key: change.Key{Name: "a"}, UID: id, Sink: sink}
	}
	for range 2 {
		if err := in.push(t.Context(), []*change.Record{rec("x", "one"), rec("x", "two"), rec("y", "one")}); err != nil {
			t.Fatal(err)
		}
	}
	if len(line.ids) != 3 {
		t.Errorf("pushed %q", line.ids)
	}
}

func TestI6WhatIsRememberedIsBounded(t *testing.T) {
	in := newIntake(t.Context(), Config{}, nil)
	for i := range remembered + 2 {
		in.told.Add(digest{byte(i), byte(i >> 8), byte(i >> 16)}, struct{}{})
	}
	newest := digest{1, 0, 1} // behind 1<<16 others
	if in.told.Len() != remembered || !in.told.Contains(newest) || in.told.Contains(digest{1}) || !in.told.Contains(digest{2}) {
		t.Errorf("knows %d", in.told.Len())
	}
}

// TestI6AnEventOfManyObjectsIsTakenOneByOne: a tenant who deletes a collection may make each record large.
func TestI6AnEventOfManyObjectsIsTakenOneByOne(t *testing.T) {
	stream := &change.Stream{Resource: change.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}}
	in := newIntake(t.Context(), Config{
		Sinks: []Sink{{Name: "bus"}},
		Find: func(string, string, string) (audit.Object, bool) {
			return audit.Object{Stream: stream, ClusterUID: "u"}, true
		},
		Observer: Observer{Event: func(string) {}, Missing: func(string) {}},
	}, &pushed{})
	var items []string
	for i := range 100 {
		items = append(items, fmt.Sprintf(`{"metadata":{"name":"a%d","namespace":"n","uid":"u%d","resourceVersion":"9"}}`, i, i))
	}
	text := fmt.Sprintf(`{"auditID":"x","stage":"ResponseComplete","verb":"deletecollection","requestURI":"/api/v1/namespaces/n/configmaps",
		"user":{"username":"tenant"},"objectRef":{"resource":"configmaps","namespace":"n","apiVersion":"v1"},"responseStatus":{"code":200},
		"requestObject":{},"responseObject":{"kind":"ConfigMapList","apiVersion":"v1","items":[%s]}}`, strings.Join(items, ","))
	taken, full := 0, errors.New("no more")
	err := in.read([]byte(text), func(*change.Record) error {
		if taken++; taken == 3 {
			return full
		}
		return nil
	})
	if taken != 3 || !errors.Is(err, full) {
		t.Errorf("%d records were made when the third was refused: %v", taken, err)
	}
}
