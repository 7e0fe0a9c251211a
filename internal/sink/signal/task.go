package signal

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// What may be under way at once of what signals have asked for, where somebody is to be told of it (I6).
const (
	MostTasks = 100
	mostParts = 5000 // before one more task is taken
)

// Task is a snapshot that a signal has asked for, with what was told of it.
type Task struct {
	ID    string `json:"id"`
	Parts []Part `json:"parts"`
	Told  string `json:"told,omitempty"` // the last of Started, Paused and Resumed; "" is nothing
	// Stopped says that a part of it ended before it was complete.
	Stopped bool `json:"stopped,omitempty"`
}

// Part is the snapshot of one stream. A task has one part of a stream at most.
type Part struct {
	Stream string        `json:"stream"`
	Limits change.Limits `json:"limits,omitzero"`
	Over   bool          `json:"over,omitempty"` // that was told
}

// State is how a part stands.
type State struct {
	Owed    bool // to the sink
	Paused  bool // it is owed, and waits until somebody resumes it
	Stopped bool // it is owed no more, and was not given to its end
	Objects int  // that were listed so far
	Listed  bool // Objects are all of them
}

// Advance is the task after what is to be told now, and whether it is over. state says how a part stands.
func (t Task) Advance(state func(*Part) State) (next Task, told []Notification, over bool) {
	t.Parts = slices.Clone(t.Parts)
	if t.Told == "" {
		told, t.Told = append(told, t.notification(Started)), Started
	}
	open, paused := 0, 0
	for i := range t.Parts {
		part := &t.Parts[i]
		if part.Over {
			continue
		}
		switch s := state(part); {
		case s.Paused:
			open, paused = open+1, paused+1
		case s.Owed:
			open++
		case s.Stopped:
			part.Over, t.Stopped = true, true
		default:
			part.Over, told = true, append(told, t.completed(part, s))
		}
	}
	switch {
	case open == 0 && t.Stopped:
		told, over = append(told, t.notification(Aborted)), true
	case open == 0:
		told, over = append(told, t.notification(Completed)), true
	case paused == open && t.Told != Paused:
		told, t.Told = append(told, t.notification(Paused)), Paused
	case paused < open && t.Told == Paused:
		told, t.Told = append(told, t.notification(Resumed)), Resumed
	}
	return t, told, over
}

// Progress is what can be told while the task is under way, and how many objects of it were listed: who told of as many
// need not tell again. Where nothing of it is being given, there are none.
func (t Task) Progress(state func(*Part) State) (n Notification, objects int) {
	current := ""
	for i := range t.Parts {
		s := state(&t.Parts[i])
		if t.Parts[i].Over || !s.Owed || s.Paused || s.Objects == 0 {
			continue
		}
		objects += s.Objects
		if current == "" {
			current = t.Parts[i].Stream
		}
	}
	n = t.notification(InProgress)
	n.Data["current_collection_in_progress"] = current
	return n, objects
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
