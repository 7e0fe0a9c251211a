package signal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// teller advances a task through states, over restarts, and says what was told.
type teller struct {
	t     *testing.T
	task  Task
	state map[string]State
}

func (r *teller) told() (types string, over bool) {
	r.t.Helper()
	saved, err := json.Marshal(r.task)
	if err != nil {
		r.t.Fatal(err)
	}
	var task Task
	if err := json.Unmarshal(saved, &task); err != nil {
		r.t.Fatal(err)
	}
	next, notifications, over := task.Advance(func(p *Part) State { return r.state[p.Stream] })
	var all []string
	for _, n := range notifications {
		all = append(all, strings.TrimSpace(n.Type+" "+n.Data["scanned_collection"]))
	}
	r.task = next
	return strings.Join(all, ", "), over
}

func TestASnapshotsStoryIsToldOnceAndToItsEnd(t *testing.T) {
	owed, paused := State{Owed: true}, State{Owed: true, Paused: true}
	story := func(parts ...string) *teller {
		r := &teller{t: t, task: Task{ID: "one"}, state: map[string]State{}}
		for _, p := range parts {
			r.task.Parts, r.state[p] = append(r.task.Parts, Part{Stream: p, Limits: change.Limits{Name: "x"}}), owed
		}
		return r
	}
	type step struct {
		pods, secrets State
		told          string
	}
	for name, steps := range map[string][]step{
		"complete": {
			{owed, owed, "STARTED"}, {owed, owed, ""}, {State{}, owed, "TABLE_SCAN_COMPLETED pods"}, {State{}, owed, ""},
			{State{}, State{}, "TABLE_SCAN_COMPLETED secrets, COMPLETED"}},
		"at once": {{State{}, State{}, "STARTED, TABLE_SCAN_COMPLETED pods, TABLE_SCAN_COMPLETED secrets, COMPLETED"}},
		"paused": {
			{owed, owed, "STARTED"}, {owed, paused, ""}, {paused, paused, "PAUSED"}, {paused, paused, ""}, {owed, owed, "RESUMED"},
			{State{}, paused, "TABLE_SCAN_COMPLETED pods, PAUSED"}, {State{}, State{}, "TABLE_SCAN_COMPLETED secrets, COMPLETED"}},
		"stopped": {
			{owed, owed, "STARTED"}, {State{Stopped: true}, owed, ""}, {State{Stopped: true}, State{}, "TABLE_SCAN_COMPLETED secrets, ABORTED"}},
	} {
		r := story("pods", "secrets")
		for i, s := range steps {
			r.state["pods"], r.state["secrets"] = s.pods, s.secrets
			told, over := r.told()
			if told != s.told || over != (i == len(steps)-1) {
				t.Errorf("%s, step %d: told %q, over is %t; want %q", name, i, told, over, s.told)
			}
		}
	}
}

// TestNotificationsAreAsDebeziumPublishesThem.
func TestNotificationsAreAsDebeziumPublishesThem(t *testing.T) {
	task := Task{ID: "ad-hoc", Parts: []Part{{Stream: "table1"}, {Stream: "table2"}}}
	done := task.completed(&task.Parts[0], State{Listed: true, Objects: 100})
	want := `{"id":"ad-hoc","aggregate_type":"Incremental Snapshot","type":"TABLE_SCAN_COMPLETED","additional_data":{"connector_name":"my-connector",` +
		`"data_collection":"table1, table2","scanned_collection":"table1","status":"SUCCEEDED","total_rows_scanned":"100"},"timestamp":"1695817046353"}`
	if got := done.Encode("my-connector", time.UnixMilli(1695817046353)); string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	progress, objects := task.Progress(func(p *Part) State { return State{Owed: true, Objects: map[string]int{"table2": 7}[p.Stream]} })
	if objects != 7 || progress.Data["current_collection_in_progress"] != "table2" || progress.Data["data_collections"] != "table1, table2" {
		t.Errorf("progress is %d %+v", objects, progress)
	}
	if empty := task.completed(&task.Parts[1], State{Listed: true}); empty.Data["status"] != "EMPTY" {
		t.Errorf("of a stream without objects: %+v", empty)
	}
	if unknown := task.completed(&task.Parts[1], State{}); unknown.Data["total_rows_scanned"] != "" || unknown.Data["status"] != "SUCCEEDED" {
		t.Errorf("of a stream whose objects nobody has counted: %+v", unknown)
	}
}

// TestI6NotificationsAreSmall, whatever was asked for; and a book takes no more tasks than some.
func TestI6NotificationsAreSmall(t *testing.T) {
	task := Task{ID: "x"}
	for range 3000 {
		task.Parts = append(task.Parts, Part{Stream: strings.Repeat("x", 300)})
	}
	for _, n := range []Notification{task.notification(Started), Refused("x", strings.Repeat("é", 100_000))} {
		if size := len(n.Encode("c", time.Now())); size > 3*maxText {
			t.Errorf("%s has %d bytes", n.Type, size)
		}
	}
	var b Book
	for range 2 {
		if b.IsFull() {
			t.Fatal("a book is full too early")
		}
		b = b.WithTask(task)
	}
	if !b.IsFull() {
		t.Error("a book of two tasks of 3000 streams takes more")
	}
	for b = (Book{}); !b.IsFull(); b = b.WithTask(Task{}) {
	}
	if len(b.Tasks) != MostTasks {
		t.Errorf("a book takes %d tasks", len(b.Tasks))
	}
}
