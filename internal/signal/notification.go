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

// cut is the text, or as much of it as a notification has, with a mark.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}
