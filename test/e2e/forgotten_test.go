package e2e

import (
	"net/http"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestI4WhatHistoryForgotIsAnnouncedAndEmittedOnce: hundreds of objects are changed, deleted and made again while the
// exporter does not run, or does not move, and the history of it is gone when it goes on.
func TestI4WhatHistoryForgotIsAnnouncedAndEmittedOnce(t *testing.T) {
	r := newRigOf(t, world{gateway: true})
	r.writer.populate(t)
	r.writer.bulk(t, 500)
	r.writer.stir()
	r.exporter.start(t)
	r.streaming()

	r.exporter.stop(t)
	deleted := r.changeAndForget()
	r.exporter.start(t)
	r.streaming()
	r.expectGap(1, deleted)

	r.exporter.signal(t, syscall.SIGSTOP)
	r.gateway.cut() // what is on its way is not forgotten
	deleted = r.changeAndForget()
	r.exporter.signal(t, syscall.SIGCONT)
	r.streaming()
	r.expectGap(2, deleted)
	for _, resource := range r.resources() {
		name := kubectlName(resource)
		if n := r.exporter.metric(t, `kubecdc_source_gaps_total{reason="gone",resource="`+name+`"}`); n < 2 {
			t.Errorf("%s has %v gaps in the metrics of this life, want one of each pause", name, n)
		}
		if reason := r.exporter.status(t, name).LastGap.Reason; reason != "gone" {
			t.Errorf("/statusz says that the last gap of %s is %q, want gone", name, reason)
		}
	}
	r.exporter.stop(t)
	r.judge(true)
}

// changeAndForget changes what is there in every way, makes more, and lets the API server forget how it came to that.
// It returns the uids of the deleted.
func (r *rig) changeAndForget() []string {
	r.t.Helper()
	before := r.version()
	deleted := r.writer.disturb(r.t) // first, so that the sinks know what is gone
	r.writer.change(r.t, 20)
	r.writer.bulk(r.t, 80)
	r.writer.finish(r.t) // so that every resource has something newer than what is compacted next
	if _, err := r.cluster.Compact(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.restartAPIServer() // which remembers more than etcd
	for _, resource := range r.resources() {
		list := metav1.ListOptions{ResourceVersion: before, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
		if _, err := r.client.Resource(resource).List(r.t.Context(), list); !apierrors.IsResourceExpired(err) {
			r.t.Fatalf("list %s as it was before: %v, want status %d: its history is not gone", kubectlName(resource), err, http.StatusGone)
		}
	}
	return deleted
}

// expectGap wants so many gaps of each resource, and a delete that the reconcile found of each object.
func (r *rig) expectGap(n int, deleted []string) {
	r.t.Helper()
	for _, sink := range r.sinks() {
		expectDeletes(r.t, sink.events, deleted, true)
		gaps := map[string]int{}
		for i := range sink.events {
			if e := &sink.events[i]; e.op() == "gap" && e.Reason == "gone" {
				gaps[e.kind()]++
			}
		}
		for _, resource := range r.resources() {
			if name := kubectlName(resource); gaps[name] < n {
				r.t.Errorf("%s has %d gaps in a sink, want %d", name, gaps[name], n)
			}
		}
	}
}

// version is where the API server stands.
func (r *rig) version() string {
	r.t.Helper()
	list, err := r.client.Resource(core("namespaces")).List(r.t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	return list.GetResourceVersion()
}
