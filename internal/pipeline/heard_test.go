package pipeline

import (
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

// TestI5WhatWasHeardIsSavedWithTheRequestAndWithTheOrder, and not with those that are refused.
func TestI5WhatWasHeardIsSavedWithTheRequestAndWithTheOrder(t *testing.T) {
	r, requests := requestRig(t)
	orders := make(chan Order)
	r.config.Orders = orders
	var id string
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(services(), "b", 2))
		r.drain(line, pods(), services())
		request := func(stream, heard string) error {
			answer := make(chan error, 1)
			requests <- Request{Reason: change.Requested, Streams: []string{stream}, Sink: "all", Heard: map[string][]byte{"all": []byte(heard)}, Answer: answer}
			return <-answer
		}
		if err := request("pods", "1"); err != nil {
			t.Error(err)
		}
		if err := request("nodes", "2"); err == nil {
			t.Error("a stream that there is not is owed")
		}
		r.wantHeard("1")
		owed, err := r.store.PendingSnapshots()
		if err != nil || len(owed) != 1 {
			t.Fatalf("owed are %+v, %v", owed, err)
		}
		id = owed[0].ID()
		order := func(id, heard string) error {
			answer := make(chan error, 1)
			orders <- Order{Do: checkpoint.Pause, IDs: []string{id}, Heard: map[string][]byte{"all": []byte(heard)}, Answer: answer}
			return <-answer
		}
		if err := order("none", "3"); err == nil {
			t.Error("a snapshot that there is not is paused")
		}
		r.wantHeard("1")
		if err := order(id, "4"); err != nil {
			t.Error(err)
		}
		r.wantHeard("4")
	}); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) wantHeard(want string) {
	r.t.Helper()
	if got, err := r.store.Heard("all"); err != nil || string(got) != want {
		r.t.Errorf("heard was %q, %v; want %q", got, err, want)
	}
}

// TestI5AllPartsOfARequestAreOwedOrNone.
func TestI5AllPartsOfARequestAreOwedOrNone(t *testing.T) {
	r, requests := requestRig(t)
	request := func(heard string, also ...RequestPart) error {
		answer := make(chan error, 1)
		requests <- Request{Reason: change.Requested, Streams: []string{"pods"}, Sink: "all", Also: also, Heard: map[string][]byte{"all": []byte(heard)}, Answer: answer}
		return <-answer
	}
	if err := r.life(func(line *Inlet) {
		r.push(line, update(pods(), "a", 1), update(services(), "b", 2))
		r.drain(line, pods(), services())
		if err := request("1", RequestPart{Streams: []string{"nodes"}}); err == nil {
			t.Error("a part of what there is not is owed")
		}
		r.wantHeard("")
		if owed, err := r.store.PendingSnapshots(); err != nil || len(owed) > 0 {
			t.Errorf("owed are %+v, %v", owed, err)
		}
		if err := request("2", RequestPart{Streams: []string{"services"}, Limits: change.Limits{Name: "b"}}); err != nil {
			t.Error(err)
		}
		r.wantHeard("2")
		owed, err := r.store.PendingSnapshots()
		if err != nil || len(owed) != 2 || owed[0].Limits != (change.Limits{}) || owed[1].Limits.Name != "b" {
			t.Errorf("owed are %+v, %v", owed, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
