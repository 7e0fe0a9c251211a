package signal

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// The types of notifications, as Debezium has them.
const (
	Started        = "STARTED"
	InProgress     = "IN_PROGRESS"
	TableCompleted = "TABLE_SCAN_COMPLETED"
	Completed      = "COMPLETED"
	Paused         = "PAUSED"
	Resumed        = "RESUMED"
	Aborted        = "ABORTED"
	Skipped        = "SKIPPED" // the signal is not followed
)

// maxText is the most bytes that a text in a notification has (I6): one fits into any topic.
const maxText = 4 << 10

// Notification is what is told of a snapshot. See the page "Debezium notifications" of Debezium's documentation.
type Notification struct {
	ID   string // of the signal, or where it lies in its topic
	Type string // one of the constants
	Data map[string]string
}

// Encode is the notification of a connector, the cluster's name, as it is sent.
func (n *Notification) Encode(connector string, at time.Time) []byte {
	data := map[string]string{"connector_name": connector}
	for name, value := range n.Data {
		data[name] = value
	}
	text, _ := json.Marshal(struct { // of texts it cannot fail
		ID        string            `json:"id"`
		Aggregate string            `json:"aggregate_type"`
		Type      string            `json:"type"`
		Data      map[string]string `json:"additional_data"`
		Timestamp string            `json:"timestamp"`
	}{n.ID, "Incremental Snapshot", n.Type, data, strconv.FormatInt(at.UnixMilli(), 10)})
	return text
}

// Refused is told of a signal that is not followed.
func Refused(id, reason string) Notification {
	return Notification{ID: id, Type: Skipped, Data: map[string]string{"reason": cut(reason)}}
}

func (t *Task) notification(kind string) Notification {
	n := Notification{ID: t.ID, Type: kind, Data: map[string]string{}}
	switch kind {
	case Started, InProgress, Paused, Resumed:
		n.Data["data_collections"] = t.collections()
	}
	return n
}

// completed is told of a part that the sink has to its end.
func (t *Task) completed(part *Part, s State) Notification {
	n := t.notification(TableCompleted)
	n.Data["data_collection"], n.Data["scanned_collection"], n.Data["status"] = t.collections(), part.Stream, "SUCCEEDED"
	if s.Listed {
		n.Data["total_rows_scanned"] = strconv.Itoa(s.Objects)
	}
	if s.Listed && s.Objects == 0 {
		n.Data["status"] = "EMPTY"
	}
	return n
}

func (t *Task) collections() string {
	names := make([]string, len(t.Parts))
	for i := range t.Parts {
		names[i] = t.Parts[i].Stream
	}
	return cut(strings.Join(names, ", "))
}

// cut is the text, or as much of it as a notification has, with a mark.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}
