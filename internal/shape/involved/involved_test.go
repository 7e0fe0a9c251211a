package involved

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// kept are objects by stream and key.
type kept map[string]change.Image

func (k kept) Images(stream *change.Stream, key change.Key) (change.Images, error) {
	if key.Name == "broken" {
		return nil, errors.New("the disk is gone")
	}
	if image, found := k[stream.String()+" "+key.String()]; found {
		return change.Images{image}, nil
	}
	return nil, nil
}

const owners = `[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"u-2","controller":true}]`

// object is one of the uid, with what comes behind its name in its metadata.
func object(uid, metadata string) change.Image {
	return change.Image{UID: uid, Object: []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"x","resourceVersion":"7"` + metadata + `},"spec":{"labels":{"no":"no"}}}`)}
}

// finder knows Pods of namespaces shop and bank, Deployments of all, and Nodes.
func finder() *Finder {
	stream := func(group, resource, kind, namespace string, clusterScoped bool) *change.Stream {
		return &change.Stream{Namespace: namespace, Resource: change.Resource{Group: group, Version: "v1", Name: resource, Kind: kind, ClusterScoped: clusterScoped}}
	}
	streams := map[Kind][]*change.Stream{
		{"", "Pod"}:            {stream("", "pods", "Pod", "bank", false), stream("", "pods", "Pod", "shop", false)},
		{"apps", "Deployment"}: {stream("apps", "deployments", "Deployment", "", false)},
		{"", "Node"}:           {stream("", "nodes", "Node", "", true)},
	}
	return &Finder{
		Streams: func(k Kind) []*change.Stream { return streams[k] }, Fields: []string{"labels", "ownerReferences"},
		Images: kept{
			"shop/pods shop/web":         object("u-1", `,"labels":{"app":"web","a\"}":"b"},"ownerReferences":`+owners),
			"bank/pods bank/vault":       object("u-3", `,"labels":{"team":"secret"}`),
			"deployments.apps shop/bare": object("u-4", ``),
			"deployments.apps shop/huge": object("u-5", `,"labels":{"a":"`+strings.Repeat("x", maxKnown)+`"}`),
			"nodes n-1":                  object("u-6", `,"labels":{"zone":"a"}`),
			"shop/pods shop/odd":         {UID: "u-7", Object: []byte(`{"metadata":{"labels":`)},
		}.Images,
	}
}

// event is one of namespace shop, in the core group, about what the reference says.
func event(reference string) *change.Record {
	return &change.Record{
		Stream: &change.Stream{Resource: change.Resource{Version: "v1", Name: "events", Kind: "Event"}},
		Op:     change.Added, Key: change.Key{Namespace: "shop", Name: "e"}, Object: []byte(`{"reason":"x","involvedObject":` + reference + `}`),
	}
}

func ref(apiVersion, kind, namespace, name, uid string) string {
	text, _ := json.Marshal(map[string]string{"apiVersion": apiVersion, "kind": kind, "namespace": namespace, "name": name, "uid": uid}) //nolint:errchkjson // texts
	return string(text)
}

func unknown(u Unknown) string { return `{"unknown":"` + string(u) + `"}` }

// TestI9AnEventTellsOfTheObjectThatItIsAboutAndOfNoOther: whoever may create Events may name anything in them.
func TestI9AnEventTellsOfTheObjectThatItIsAboutAndOfNoOther(t *testing.T) {
	reasons := Unknowns()
	for what, c := range map[string]struct{ reference, want string }{
		"a Pod":                       {ref("v1", "Pod", "shop", "web", "u-1"), `{"resourceVersion":"7","labels":{"app":"web","a\"}":"b"},"ownerReferences":` + owners + `}`},
		"a Pod without its version":   {ref("", "Pod", "shop", "web", "u-1"), `{"resourceVersion":"7","labels":{"app":"web","a\"}":"b"},"ownerReferences":` + owners + `}`},
		"another version of the kind": {ref("apps/v1beta1", "Deployment", "shop", "bare", "u-4"), `{"resourceVersion":"7"}`},
		"too many labels":             {ref("apps/v1", "Deployment", "shop", "huge", "u-5"), unknown(TooLarge)},
		"an earlier object":           {ref("v1", "Pod", "shop", "web", "u-0"), unknown(OtherUID)},
		"no uid":                      {ref("v1", "Pod", "shop", "web", ""), unknown(OtherUID)},
		"another namespace":           {ref("v1", "Pod", "bank", "vault", "u-3"), unknown(OtherNamespace)},
		"no namespace":                {ref("v1", "Pod", "", "web", "u-1"), unknown(OtherNamespace)},
		"another one through a slash": {ref("v1", "Pod", "shop", "../bank/vault", "u-3"), unknown(Unnamed)},
		"a node":                      {ref("v1", "Node", "", "n-1", "u-6"), unknown(OtherNamespace)},
		"a node of a namespace":       {ref("v1", "Node", "shop", "n-1", "u-6"), unknown(OtherNamespace)},
		"what is gone":                {ref("v1", "Pod", "shop", "gone", "u-9"), unknown(Absent)},
		"a kind that is not streamed": {ref("v1", "Secret", "shop", "s", "u-9"), unknown(NotStreamed)},
		"another group":               {ref("shop.example.com/v1", "Pod", "shop", "web", "u-1"), unknown(NotStreamed)},
		"a name of 5,000 characters":  {ref("v1", "Pod", "shop", strings.Repeat("{", 5000), "u-9"), unknown(Unnamed)},
		"a kind of 5,000 characters":  {ref("v1", strings.Repeat("}", 5000), "shop", "web", "u-1"), unknown(NotStreamed)},
		"a name made of braces":       {ref("v1", "Pod", "shop", `{"a":[}`, "u-9"), unknown(Absent)},
		"no reference":                {`null`, unknown(Unnamed)},
		"a reference that is none":    {`[{"kind":"Pod"}]`, unknown(Unnamed)},
		"names that are none":         {`{"kind":"Pod","apiVersion":"v1","namespace":"shop","name":7,"uid":["u-1"]}`, unknown(Unnamed)},
		"an escaped reference":        {`{"kin\u0064":"P\u006fd","apiVersion":"v1","namespace":"shop","name":"we\u0062","uid":"u-1"}`, `{"resourceVersion":"7","labels":{"app":"web","a\"}":"b"},"ownerReferences":` + owners + `}`},
		"an object that is no JSON":   {ref("v1", "Pod", "shop", "odd", "u-7"), unknown(Unreadable)},
		"an Event that is no JSON":    {`{`, unknown(Unnamed)},
	} {
		got, err := finder().Find(event(c.reference))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", what, got, err, c.want)
		}
		reasons = slices.DeleteFunc(reasons, func(u Unknown) bool { return c.want == unknown(u) })
	}
	if len(reasons) > 0 { // which are listed for consumers
		t.Errorf("no Event has the reasons %q", reasons)
	}
}

// A node's labels are told where an API server demands its Events to be.
func TestI9ClusterScopedObjectsAreToldInNamespaceDefaultAlone(t *testing.T) {
	for namespace, want := range map[string]string{
		"default": `{"resourceVersion":"7","labels":{"zone":"a"}}`, "shop": unknown(OtherNamespace), "kube-system": unknown(OtherNamespace), "": unknown(OtherNamespace),
	} {
		rec := event(ref("v1", "Node", "", "n-1", "u-6"))
		rec.Key.Namespace = namespace
		if got, err := finder().Find(rec); err != nil || string(got) != want {
			t.Errorf("in namespace %q: %s, %v", namespace, got, err)
		}
	}
}

func TestEventsOfBothGroupsNameTheirObject(t *testing.T) {
	rec := event(ref("v1", "Pod", "shop", "web", "u-1"))
	stream := *rec.Stream
	rec.Stream, stream.Resource.Group = &stream, "events.k8s.io"
	if got, err := finder().Find(rec); err != nil || string(got) != unknown(Unnamed) {
		t.Errorf("involvedObject in another group: %s, %v", got, err)
	}
	rec.Object = []byte(strings.Replace(string(rec.Object), "involvedObject", "regarding", 1))
	if got, err := finder().Find(rec); err != nil || !strings.Contains(string(got), `"app":"web"`) {
		t.Errorf("regarding: %s, %v", got, err)
	}
}

// What has no Event, or goes to nobody, is about nothing; what cannot be read is an error.
func TestI9WhatIsNotToldIsAboutNothing(t *testing.T) {
	for what, spoil := range map[string]func(*change.Record){
		"a frame":            func(rec *change.Record) { rec.Op = change.SnapshotBegin },
		"a bookmark":         func(rec *change.Record) { rec.Op = change.Bookmark },
		"a missed delete":    func(rec *change.Record) { rec.Op, rec.Object = change.Deleted, nil },
		"what is left out":   func(rec *change.Record) { rec.Filtered = true },
		"what is kept back":  func(rec *change.Record) { rec.Withheld = "filter" },
		"what is unreadable": func(rec *change.Record) { rec.Withheld, rec.Object = change.Unreadable, nil },
	} {
		rec := event(ref("v1", "Pod", "shop", "web", "u-1"))
		if spoil(rec); true {
			if got, err := finder().Find(rec); err != nil || got != nil {
				t.Errorf("%s: %s, %v", what, got, err)
			}
		}
	}
	if _, err := finder().Find(event(ref("v1", "Pod", "shop", "broken", "u-1"))); err == nil {
		t.Error("a disk that is gone gives no error")
	}
}

// TestI9ASinksRulesComeAfterWhatIsKnown: both for what the Event names and for what is known of it.
func TestI9ASinksRulesComeAfterWhatIsKnown(t *testing.T) {
	events := &event("{}").Stream.Resource
	named := event(ref("v1", "Pod", "shop", "web", "u-1")).Object
	cut := func(of string) func([]byte) ([]byte, error) {
		return func(object []byte) ([]byte, error) {
			var known map[string]map[string]json.RawMessage
			if err := json.Unmarshal(object, &known); err != nil {
				return nil, err
			}
			delete(known["metadata"], of)
			return json.Marshal(known)
		}
	}
	const known = `{"labels":{"a":"b"},"resourceVersion":"7"}`
	for what, c := range map[string]struct {
		event, known string
		rules        func([]byte) ([]byte, error)
		want         string
	}{
		"no rules for it":       {string(named), known, cut("x"), known},
		"labels are cut":        {string(named), known, cut("labels"), `{"resourceVersion":"7"}`},
		"all is cut":            {string(named), known, func([]byte) ([]byte, error) { return []byte(`{}`), nil }, `{}`},
		"rules that fail":       {string(named), known, func([]byte) ([]byte, error) { return nil, errors.New("no") }, unknown(Unreadable)},
		"the reference is cut":  {`{"reason":"x"}`, known, cut("x"), unknown(Unnamed)},
		"the name is a hash":    {strings.Replace(string(named), `"web"`, `7`, 1), known, cut("x"), unknown(Unnamed)},
		"nothing is known":      {string(named), unknown(Absent), cut("unknown"), unknown(Absent)},
		"nothing was asked for": {string(named), ``, cut("x"), ``},
	} {
		var in []byte
		if c.known != "" {
			in = []byte(c.known)
		}
		if got := Narrow(events, []byte(c.event), in, func(_ Kind, _ change.Key, object []byte) ([]byte, error) { return c.rules(object) }); string(got) != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}

// TestI6ASmallEventStaysSmall, whatever the labels of the object.
func TestI6ASmallEventStaysSmall(t *testing.T) {
	f := finder()
	for _, size := range []int{10, maxKnown / 2, maxKnown, 10 * maxKnown} {
		f.Images = kept{"shop/pods shop/web": object("u-1", `,"labels":{"a":"`+strings.Repeat("x", size)+`"},"ownerReferences":`+owners)}.Images
		got, err := f.Find(event(ref("v1", "Pod", "shop", "web", "u-1")))
		if err != nil || len(got) > maxKnown+100 || !json.Valid(got) || (len(got) > size) != (size < maxKnown) {
			t.Errorf("%d bytes of labels are told as %d, %v", size, len(got), err)
		}
	}
}
