package decode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Owner is the cluster whose exporter writes to a log. It tells what the exporter of another one has written there.
type Owner struct {
	Cluster string // its name in the configuration
	// of namespace kube-system: its own, and those that the saved state knows of clusters which had the name before
	UIDs []string
	// Named says that the cluster's name is a part of each destination, so that whatever is there was written under it.
	// Not all formats say the name.
	Named bool
}

// Judge is a sink.Judge.
func (o *Owner) Judge(m *sink.Stored) error {
	id, err := change.ParseAnyID(idText(m))
	if err != nil {
		return nil // nobody's of us
	}
	uid := change.ClusterOf(id.Cluster)
	if slices.ContainsFunc(o.UIDs, func(ours string) bool { return change.SameCluster(uid, ours) }) {
		return nil
	}
	name := clusterName(m)
	return &sink.ForeignError{Place: m.Place, Cluster: name, UID: uid, Ours: o.Cluster, Same: name == o.Cluster || name == "" && o.Named}
}

// clusterName is the name of the cluster that the message was written under, "" where it does not say.
func clusterName(m *sink.Stored) string {
	if says := attributesOf(m); says != nil {
		return says("cluster")
	}
	members, _ := scan.Fields(m.Value)
	if _, bare := members["kind"]; bare { // an object may have fields of any name
		return ""
	}
	if scan.TextOf(members["specversion"]) != "" {
		return scan.TextOf(members["cluster"])
	}
	source, _ := scan.Fields(members["source"]) // of the envelope
	return scan.TextOf(source["name"])
}

// Change is what one message tells.
type Change struct {
	ID                change.ID
	Time              time.Time // when the exporter received it; zero where the format does not say
	Reason            change.Reason
	Snapshot          string // the id of the comparison that it belongs to, "" for the watch
	FinalStateUnknown bool
	Trimmed           string // the paths that were cut to make it fit, joined by commas
	BeforeOmitted     bool   // the object before was left out to make it fit
	Replayed          change.Replayed
	Changed           json.RawMessage // pointers of what differs, a list; nil where it does not say
	ChangedCut        bool            // there are more
	Actor             json.RawMessage // who changed the object last, a list; nil where it does not say
	Involved          json.RawMessage // what is known of the object that an Event is about; nil where it does not say
	Object            []byte          // the state, or the last state of a delete; nil where there is none
	Patch             json.RawMessage // in the place of Object what has changed since version Base: a JSON Patch (RFC 6902)
	Base              string
	Data              []byte // what a snapshot's frame, a gap or an actor says of itself
	// Of is the object that an actor's request was about, of an actor alone. The resource is as kubectl names it.
	Of struct{ Resource, UID string }
}

// Header is the part of a CloudEvents header's name before the attribute: "ce_" on Kafka, "ce-" on NATS.
const (
	headerKafka = "ce_"
	headerNATS  = "ce-"
	headerData  = "kubecdc-data" // of the envelope: what has no value
)

// ID reads which change the message is. It returns change.ErrForeignID for one that kubecdc did not write, and for an
// actor: that is no change.
func ID(m *sink.Stored) (change.ID, error) { return change.ParseID(idText(m)) }

// IsActor says whether the message tells who asked for a change.
func IsActor(m *sink.Stored) bool {
	id, _ := change.ParseAnyID(idText(m))
	return id.Op == change.Actor
}

// idText is the message's id, "" where it has none.
func idText(m *sink.Stored) string {
	if text := m.Header(sink.HeaderID); text != "" {
		return text
	}
	members, _ := scan.Fields(m.Value)
	return scan.TextOf(members["id"])
}

// Read reads all that the message tells, whatever its format. It returns change.ErrForeignID as ID does, and another
// error for a message of ours whose value is damaged.
func Read(m *sink.Stored) (*Change, error) {
	id, err := change.ParseAnyID(idText(m))
	if err != nil {
		return nil, err
	}
	c := &Change{ID: id, Snapshot: id.Snapshot}
	c.marks(func(name string) string { return plain(m.Header(sink.HeaderMark + name)) })
	says := attributesOf(m)
	if says != nil {
		c.attributes(says)
	}
	switch {
	case len(m.Value) == 0:
		c.payload([]byte(m.Header(headerData)))
	case says != nil:
		c.payload(m.Value)
	default:
		err = c.fromValue(m.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", m.Place, err)
	}
	if c.Time.IsZero() {
		c.Time = m.Time
	}
	var said struct{ Reason change.Reason }
	if c.Reason == "" && json.Unmarshal(c.Data, &said) == nil { // of a frame in a format that has no place for it
		c.Reason = said.Reason
	}
	return c, nil
}

// attributesOf are those of CloudEvents in binary mode, nil where the message has none.
func attributesOf(m *sink.Stored) func(name string) string {
	switch {
	case m.Header(headerKafka+"type") != "":
		return func(name string) string { return m.Header(headerKafka + name) }
	case m.Header(headerNATS+"type") != "":
		return func(name string) string { return plain(m.Header(headerNATS + name)) }
	}
	return nil
}

// plain is a header's value without percent-encoding.
func plain(value string) string {
	if text, err := url.PathUnescape(value); err == nil {
		return text
	}
	return value
}

// attributes takes what says has under their names, "" for none.
func (c *Change) attributes(says func(name string) string) {
	c.Time, _ = time.Parse(time.RFC3339Nano, says("time")) // zero where there is none
	c.Reason, c.Snapshot = change.Reason(says("reason")), cmp.Or(says("snapshot"), c.Snapshot)
	c.FinalStateUnknown, c.ChangedCut = says("finalstateunknown") == "true", says("changedcut") == "true"
	c.Actor, c.Involved, c.Changed = jsonOf('[', says("actor")), jsonOf('{', says("involved")), jsonOf('[', says("changed"))
	c.Base = says("base")
}

// marks takes what was done to the record for its sink.
func (c *Change) marks(says func(name string) string) {
	c.Trimmed, c.BeforeOmitted = says("trimmed"), says("beforeomitted") == "true"
	c.Replayed = change.Replayed(says("replayed"))
}

// jsonOf is a text of JSON that begins so, nil where it is none.
func jsonOf(begin byte, text string) json.RawMessage {
	if text == "" || text[0] != begin || !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}

// payload is an object, what has changed where there is a base, or it speaks of the stream.
func (c *Change) payload(payload []byte) {
	payload = bytes.TrimSpace(payload)
	switch {
	case c.Base != "":
		c.Patch = payload
	case len(payload) == 0 || string(payload) == "null":
	case c.ID.Op.OfObject():
		c.Object = payload
	default:
		c.Data = payload
	}
}

// fromValue reads the CloudEvent, the envelope, or the bare object, which alone has a kind.
func (c *Change) fromValue(value []byte) error {
	members, _ := scan.Fields(value)
	if members == nil {
		if err := json.Unmarshal(value, &members); err != nil {
			return fmt.Errorf("its value is not a JSON object: %w", err)
		}
	}
	_, bare := members["kind"]
	_, event := members["specversion"]
	_, envelope := members["before"]
	if bare || !event && !envelope {
		c.payload(value)
		return nil
	}
	c.attributes(saying(members))
	if event {
		c.marks(saying(members))
		c.payload(members["data"])
		if c.ID.Op == change.Actor {
			of := change.Resource{Group: scan.TextOf(members["group"]), Name: scan.TextOf(members["resource"])}
			c.Of.Resource, c.Of.UID = of.String(), scan.TextOf(members["uid"])
		}
		return nil
	}
	source, _ := scan.Fields(members["source"])
	c.marks(saying(source))
	if millis, err := strconv.ParseInt(string(members["ts_ms"]), 10, 64); err == nil {
		c.Time = time.UnixMilli(millis)
	}
	switch {
	case !c.ID.Op.OfObject():
		c.payload(members["message"])
	case c.ID.Op == change.Deleted:
		c.payload(members["before"])
	default:
		c.payload(members["after"])
	}
	return nil
}

// saying has the texts of members, and what is none as it is written.
func saying(members map[string]json.RawMessage) func(name string) string {
	return func(name string) (said string) {
		if json.Unmarshal(members[name], &said) != nil {
			return string(members[name])
		}
		return said
	}
}
