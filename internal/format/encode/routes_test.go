package encode

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

func TestResourcesHaveTopicsOfTheirOwn(t *testing.T) {
	shop := *deployments()
	shop.Namespace = "shop"
	routes := Routes{Others: topic(t, "all", "c"), Own: func(stream *change.Stream) Destination {
		if *stream == *deployments() {
			return topic(t, "own.{namespace}", "c")
		}
		return nil
	}}
	key := change.Key{Namespace: "shop", Name: "web"}
	for want, stream := range map[string]*change.Stream{"own.shop": deployments(), "all": clusterRoles()} {
		if got := string(routes.Append(nil, &change.Record{Stream: stream, Key: key})); got != want {
			t.Errorf("%s goes to %s, want %s", stream, got, want)
		}
	}
	if got := string(routes.Append(nil, &change.Record{Stream: &shop, Key: key})); got != "all" {
		t.Errorf("%s goes to %s, want all", &shop, got)
	}
}

func TestLabelsAreThoseOfTheObjectThatIsWritten(t *testing.T) {
	labelled := func(op change.Op, object, before string) *change.Record {
		rec := &change.Record{Stream: deployments(), Op: op, Key: change.Key{Namespace: "shop", Name: "web"}}
		if object != "" {
			rec.Object = []byte(object)
		}
		if before != "" {
			rec.Before = []byte(before)
		}
		return rec
	}
	const web, shop = `{"metadata":{"labels":{"app":"web.v_1","a.b/c":"x"}}}`, `{"metadata":{"labels":{"app":"shop"}}}`
	for _, c := range []struct {
		name           string
		rec            *change.Record
		topic, subject string
	}{
		{"update", labelled(change.Updated, web, ""), "k.web.v_1.x", "k.web_v=5F1.x"},
		{"change of the label", labelled(change.Updated, web, shop), "k.web.v_1.x", "k.web_v=5F1.x"},
		{"delete", labelled(change.Deleted, web, shop), "k.web.v_1.x", "k.web_v=5F1.x"},
		{"delete that no one saw", labelled(change.Deleted, "", shop), "k.shop.-", "k.shop.-"},
		{"delete of what is not kept", labelled(change.Deleted, "", ""), "k.-.-", "k.-.-"},
		{"no labels", labelled(change.Added, `{"metadata":{}}`, ""), "k.-.-", "k.-.-"},
		{"empty label", labelled(change.Added, `{"metadata":{"labels":{"app":""}}}`, ""), "k.-.-", "k.-.-"},
		{"labels of another form", labelled(change.Added, `{"metadata":{"labels":["app"]}}`, ""), "k.-.-", "k.-.-"},
		{"redacted labels", labelled(change.Added, `{"metadata":{"labels":{"app":"hmac-sha256:00"}}}`, ""), "k.hmac-sha256_00.-", "k.hmac-sha256=3A00.-"},
		{"labels elsewhere", labelled(change.Added, `{"spec":{"metadata":{"labels":{"app":"no"}}},"labels":{"app":"no"}}`, ""), "k.-.-", "k.-.-"},
		{"a snapshot's end", &change.Record{Stream: deployments(), Op: change.SnapshotEnd, Object: []byte(web)}, "k.-.-", "k.-.-"},
	} {
		const template = "k.{label:app}.{label:a.b/c}"
		subject, err := NewSubject(template, "c")
		must(t, err)
		if got := topic(t, template, "c").Of(c.rec); got != c.topic {
			t.Errorf("%s: topic is %s, want %s", c.name, got, c.topic)
		}
		if got := string(subject.Append(nil, c.rec)); got != c.subject {
			t.Errorf("%s: subject is %s, want %s", c.name, got, c.subject)
		}
		if subject.Filter() != "k.*.*" {
			t.Errorf("filter is %s", subject.Filter())
		}
	}
	if name, fixed := topic(t, "k.{label:app}", "c").Fixed(deployments()); fixed {
		t.Errorf("a topic with a label is fixed to be %s", name)
	}
	if _, err := NewTopic("k.{label:}", "c"); err == nil {
		t.Error("a label without a key is a placeholder")
	}
}
