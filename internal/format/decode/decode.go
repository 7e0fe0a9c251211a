package decode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
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
	if name := m.Header(headerKafka + "cluster"); name != "" {
		return name
	}
	if name, err := url.PathUnescape(m.Header(headerNATS + "cluster")); err == nil && name != "" {
		return name
	}
	members := membersOf(m.Value)
	if _, bare := members["kind"]; bare { // an object may have fields of any name
		return ""
	}
	if text(members["specversion"]) != "" {
		return text(members["cluster"])
	}
	return text(membersOf(members["source"])["name"]) // of the envelope
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
	Of                Of     // of an actor alone
}

// Of is the object that an actor's request was about.
type Of struct {
	Resource string // as kubectl names it
	UID      string
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
	return text(membersOf(m.Value)["id"])
}

// membersOf are those of an object, which may be as deep as an API server takes within an envelope; nil is that the
// value is none.
func membersOf(value []byte) map[string]json.RawMessage {
	members := map[string]json.RawMessage{}
	if !scan.Members(value, func(name string, value []byte) { members[name] = value }) {
		return nil
	}
	return members
}

// text is a JSON string's, "" where the value is none.
func text(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// Read reads all that the message tells, whatever its format. It returns change.ErrForeignID as ID does, and another
// error for a message of ours whose value is damaged.
func Read(m *sink.Stored) (*Change, error) {
	id, err := change.ParseAnyID(idText(m))
	if err != nil {
		return nil, err
	}
	c := &Change{
		ID: id, Snapshot: id.Snapshot, // the following are in the headers that every format has on a broker
		Trimmed: plain(m.Header(sink.HeaderTrimmed)), BeforeOmitted: m.Header(sink.HeaderBeforeOmitted) == "true", Replayed: change.Replayed(m.Header(sink.HeaderReplayed)),
	}
	switch {
	case m.Header(headerKafka+"type") != "":
		c.fromHeaders(m, headerKafka)
	case m.Header(headerNATS+"type") != "":
		c.fromHeaders(m, headerNATS)
	case len(m.Value) == 0:
		c.set([]byte(m.Header(headerData)))
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

// fromHeaders reads CloudEvents in binary mode.
func (c *Change) fromHeaders(m *sink.Stored, prefix string) {
	c.setAttributes(m.Header(prefix+"time"), m.Header(prefix+"reason"), m.Header(prefix+"snapshot"))
	c.FinalStateUnknown = m.Header(prefix+"finalstateunknown") == "true"
	c.Actor = jsonOf[list]([]byte(plain(m.Header(prefix + "actor"))))
	c.Involved = jsonOf[object]([]byte(plain(m.Header(prefix + "involved"))))
	c.Changed = jsonOf[list]([]byte(plain(m.Header(prefix + "changed"))))
	c.ChangedCut = m.Header(prefix+"changedcut") == "true"
	c.setContent(m.Value, m.Header(prefix+"base"))
	if len(m.Value) == 0 {
		c.set([]byte(m.Header(headerData)))
	}
}

// plain is a header's value without percent-encoding, which not every transport has.
func plain(value string) string {
	if text, err := url.PathUnescape(value); err == nil {
		return text
	}
	return value
}

// The forms of values that are JSON within JSON.
type (
	list   []json.RawMessage
	object map[string]json.RawMessage
)

// jsonOf is a value of the form, or one within a text, nil where it is none.
func jsonOf[F list | object](value json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) == nil {
		value = json.RawMessage(text)
	}
	var of F
	if json.Unmarshal(value, &of) != nil || of == nil {
		return nil
	}
	return value
}

func (c *Change) setAttributes(at, reason, snapshot string) {
	c.Time, _ = time.Parse(time.RFC3339Nano, at) // zero where there is none
	c.Reason = change.Reason(reason)
	if snapshot != "" {
		c.Snapshot = snapshot
	}
}

// set is the payload, which is an object or speaks of the stream.
func (c *Change) set(payload []byte) {
	payload = bytes.TrimSpace(payload)
	switch {
	case len(payload) == 0 || string(payload) == "null":
	case c.ID.Op.OfObject():
		c.Object = payload
	default:
		c.Data = payload
	}
}

// setContent is the payload, which is a patch where it has a base.
func (c *Change) setContent(payload []byte, base string) {
	if base == "" {
		c.set(payload)
		return
	}
	c.Patch, c.Base = bytes.TrimSpace(payload), base
}

// value is what the values of all formats have, by their keys.
type value struct {
	SpecVersion       string          `json:"specversion"`
	Group             string          `json:"group"`
	Resource          string          `json:"resource"`
	UID               string          `json:"uid"`
	Time              string          `json:"time"`
	Reason            string          `json:"reason"`
	Snapshot          string          `json:"snapshot"`
	FinalStateUnknown bool            `json:"finalstateunknown"`
	Data              json.RawMessage `json:"-"`
	Base              string          `json:"base"`
	Actor             json.RawMessage `json:"actor"`
	Involved          json.RawMessage `json:"involved"`
	Changed           json.RawMessage `json:"changed"`
	ChangedCut        bool            `json:"changedcut"`
	remarks

	Op     string          `json:"op"`
	Millis int64           `json:"ts_ms"`
	Source json.RawMessage `json:"source"`
	Before json.RawMessage `json:"-"`
	After  json.RawMessage `json:"-"`
	Text   json.RawMessage `json:"-"`
}

// remarks are what was done to a record for its sink, as a value has it.
type remarks struct {
	Trimmed       string          `json:"trimmed"`
	BeforeOmitted bool            `json:"beforeomitted"`
	Replayed      change.Replayed `json:"replayed"`
}

// mark takes them from a value, which is all that a file has.
func (c *Change) mark(m remarks) {
	c.Trimmed, c.BeforeOmitted, c.Replayed = m.Trimmed, m.BeforeOmitted, m.Replayed
}

// fromValue reads the CloudEvent, the envelope, or the bare object, which alone has a kind.
func (c *Change) fromValue(text []byte) error {
	keys := membersOf(text)
	if keys == nil {
		if err := json.Unmarshal(text, &keys); err != nil {
			return fmt.Errorf("its value is not a JSON object: %w", err)
		}
	}
	_, bare := keys["kind"]
	_, event := keys["specversion"]
	_, envelope := keys["before"]
	if bare || !event && !envelope {
		c.set(text)
		return nil
	}
	var v value
	for name, into := range map[string]*json.RawMessage{"data": &v.Data, "before": &v.Before, "after": &v.After, "message": &v.Text} {
		*into = keys[name] // which may be an object, and is left as it is
		delete(keys, name)
	}
	rest, err := json.Marshal(keys)
	if err == nil {
		err = json.Unmarshal(rest, &v)
	}
	if err != nil {
		return fmt.Errorf("its value has another form: %w", err)
	}
	c.Actor, c.Involved, c.Changed, c.ChangedCut = jsonOf[list](v.Actor), jsonOf[object](v.Involved), jsonOf[list](v.Changed), v.ChangedCut
	if event {
		c.setAttributes(v.Time, v.Reason, v.Snapshot)
		c.FinalStateUnknown = v.FinalStateUnknown
		c.mark(v.remarks)
		c.setContent(v.Data, v.Base)
		if c.ID.Op == change.Actor {
			c.Of = Of{Resource: change.Resource{Group: v.Group, Name: v.Resource}.String(), UID: v.UID}
		}
		return nil
	}
	c.Time = time.UnixMilli(v.Millis)
	var source remarks // of an event it is a text
	if json.Unmarshal(v.Source, &source) == nil {
		c.mark(source)
	}
	switch {
	case !c.ID.Op.OfObject():
		c.set(v.Text)
	case c.ID.Op == change.Deleted:
		c.set(v.Before)
	default:
		c.set(v.After)
	}
	return nil
}

// SnapshotVersion is the resourceVersion that a comparison listed, from its id; "" where it is no such id.
func SnapshotVersion(id string) string {
	version, _, _ := strings.Cut(id, ".")
	return version
}
