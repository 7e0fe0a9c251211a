package consumers

import (
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// event is what the SDK's consumer makes of a message.
type event struct {
	Mode       string
	Attributes map[string]any
	Data       json.RawMessage
}

func (e *event) attribute(name string) string {
	text, _ := e.Attributes[name].(string)
	return text
}

func (e *event) op() string { return strings.TrimPrefix(e.attribute("type"), "dev.kubecdc.") }

// resource is the event's in kubectl's form.
func (e *event) resource() string {
	if group := e.attribute("group"); group != "" {
		return e.attribute("resource") + "." + group
	}
	return e.attribute("resource")
}

func (e *event) key() string { return key(e.resource(), e.attribute("namespace"), e.attribute("name")) }

// sdkEvents are the events of a topic or a stream. The SDK leaves values of headers in NATS percent-encoded, which the
// binding for NATS wants to be decoded, and adds where a message stood in Kafka.
func sdkEvents(t *testing.T, mode string, command ...string) []event {
	t.Helper()
	broker, place := command[1], command[3]
	var events []event
	for _, line := range output(t, command...) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("the SDK's consumer of %s wrote %q: %v", place, line, err)
		}
		if e.Mode == "unknown" && broker == "kafka" {
			continue // a tombstone
		}
		if e.Mode != mode {
			t.Fatalf("the SDK found mode %q in %s, want %q: %s", e.Mode, place, mode, line)
		}
		for name, value := range e.Attributes {
			if strings.HasPrefix(name, "kafka") {
				delete(e.Attributes, name)
			}
			if broker == "nats" && mode == "binary" {
				plain, err := url.PathUnescape(fmt.Sprint(value))
				if err != nil {
					t.Fatal(err)
				}
				e.Attributes[name] = plain
			}
		}
		events = append(events, e)
	}
	return events
}

// checkEvents folds the events, in which each object's are in their order, and holds the result against the list.
func checkEvents(t *testing.T, events []event, want table) {
	t.Helper()
	got, ids, ops := table{}, map[string]bool{}, map[string]int{}
	for i := range events {
		e := &events[i]
		ops[e.op()]++
		if e.attribute("finalstateunknown") == "true" {
			ops["finalstateunknown"]++
		}
		if id := e.attribute("id"); ids[id] {
			t.Errorf("event %s comes twice", id)
		} else {
			ids[id] = true
		}
		switch e.op() {
		case "added", "updated", "replaced", "sync":
			got[e.key()] = comparable(t, e.Data)
			checkAttributes(t, e)
		case "deleted":
			delete(got, e.key())
			if len(e.Data) > 0 {
				checkAttributes(t, e)
			}
		}
	}
	for _, op := range []string{"added", "updated", "deleted", "replaced", "sync", "snapshot.begin", "snapshot.end", "gap", "finalstateunknown"} {
		if ops[op] == 0 {
			t.Errorf("there is no %s among the events %v", op, ops)
		}
	}
	same(t, got, want)
}

// checkAttributes holds the attributes against the object.
func checkAttributes(t *testing.T, e *event) {
	t.Helper()
	object := comparable(t, e.Data)
	metadata, _ := object["metadata"].(map[string]any)
	for attribute, field := range map[string]string{"name": "name", "namespace": "namespace", "uid": "uid", "resourceversion": "resourceVersion"} {
		value, _ := metadata[field].(string)
		if got := e.attribute(attribute); got != value {
			t.Errorf("attribute %s is %q, and %s of the object is %q", attribute, got, field, value)
		}
	}
	apiVersion := strings.TrimPrefix(e.attribute("group")+"/"+e.attribute("version"), "/")
	if object["apiVersion"] != apiVersion || e.attribute("datacontenttype") != "application/json" || e.attribute("source") != "/clusters/consumers" {
		t.Errorf("attributes are %v, of an object of %v", e.Attributes, object["apiVersion"])
	}
}

// sameEvents wants of two readers the same, attribute by attribute and digit by digit, in whatever order of the
// objects.
func sameEvents(t *testing.T, one, other []event) {
	t.Helper()
	all := map[string]*event{}
	for i := range one {
		all[sharedID(&one[i])] = &one[i]
	}
	for i := range other {
		e := &other[i]
		first := all[sharedID(e)]
		if first == nil {
			t.Errorf("event %s is not in the other log", e.attribute("id"))
			continue
		}
		if !reflect.DeepEqual(plain(first), plain(e)) {
			t.Fatalf("event %s is\n%v %s\nand in the other log\n%v %s", e.attribute("id"), e.Attributes, e.Data, first.Attributes, first.Data)
		}
		delete(all, sharedID(e))
	}
	for id := range all {
		t.Errorf("event %s is in one log only", id)
	}
}

// withoutNumber is the name of a snapshot without its number. Each sink has snapshots of its own.
func withoutNumber(text string) string {
	return regexp.MustCompile(`(\d)\.\d{10,}(\.full)?$`).ReplaceAllString(text, "$1$2")
}

// sharedID is what an event has in each log. Several snapshots of a resource can be of one version.
func sharedID(e *event) string {
	return withoutNumber(e.attribute("id")) + " " + e.attribute("reason")
}

// plain is the event without what may differ: transports know no empty header, and a sink may have a watch and a
// snapshot of its own, which read a change at another time.
func plain(e *event) map[string]any {
	all := map[string]any{"data": string(e.Data)}
	for name, value := range e.Attributes {
		if text, isText := value.(string); isText && (name == "id" || name == "snapshot") {
			value = withoutNumber(text)
		}
		if value != "" && name == "time" {
			value = "some"
		}
		if value != "" {
			all[name] = value
		}
	}
	return all
}

// same compares tables.
func same(t *testing.T, got, want table) {
	t.Helper()
	for k, object := range want {
		if !reflect.DeepEqual(got[k], object) {
			t.Errorf("%s is\n%v, in the cluster\n%v", k, got[k], object)
		}
	}
	for k := range got {
		if want[k] == nil {
			t.Errorf("%s is not in the cluster any more", k)
		}
	}
}
