package source

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestI4WhatASinkThatComesBackIsToldFirstIsNotOfWhatExists: when its log was read, a comparison had not come to one of
// the objects.
func TestI4WhatASinkThatComesBackIsToldFirstIsNotOfWhatExists(t *testing.T) {
	server := script(t, 100)
	server.list = func(url.Values) (int, string) { return http.StatusOK, podList(100, "", "there 60") }
	server.watch = func(_ url.Values, w *watchWriter) { w.hold() }
	r := newRecorder("there 60")
	for _, name := range []string{"lost", "there"} {
		entry := change.Entry{Key: change.Key{Namespace: "n", Name: name}, UID: "uid-" + name, ResourceVersion: "30"}
		r.sinkOnly = append(r.sinkOnly, change.SinkOnly{Sink: "lake", Entry: entry, Undeleted: true})
	}
	stream := server.start(r, at(100))
	stream.Request(change.Owed{Sink: "lake", Reason: change.Absent})
	want(t, "records", r.wait(t, "snapshot.end 100 absent to lake"), "gap 100 absent to lake", "snapshot.begin 100 absent to lake",
		"deleted lost 30 unseen to lake", "sync there 60 to lake", "snapshot.end 100 absent to lake")
}
