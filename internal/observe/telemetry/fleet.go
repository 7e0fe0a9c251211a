package telemetry

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Fleet shows several clusters that one exporter follows, each as its own Telemetry has it, and those that it cannot
// follow now. Its methods may be called from any goroutine.
type Fleet struct {
	registry *prometheus.Registry
	up       *prometheus.GaugeVec

	mu sync.Mutex // guards the following
	of map[string]*followed
}

// followed is one of the clusters.
type followed struct {
	shown   *Telemetry // nil while nothing is followed
	problem string     // why it is not; "" is not known yet
}

// NewFleet is one of no clusters.
func NewFleet() *Fleet {
	up := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubecdc_cluster_up", Help: "1 where the cluster is followed, 0 where its last attempt to begin has failed."}, []string{"cluster"})
	f := &Fleet{registry: prometheus.NewRegistry(), up: up, of: map[string]*followed{}}
	f.registry.MustRegister(append(ofProcess(), up)...)
	return f
}

// Add has the cluster shown, which is not followed yet.
func (f *Fleet) Add(cluster string) { f.set(cluster, &followed{}) }

// Follows shows what the cluster's Telemetry has.
func (f *Fleet) Follows(cluster string, t *Telemetry) { f.set(cluster, &followed{shown: t}) }

// Failed says why the cluster is not followed.
func (f *Fleet) Failed(cluster string, err error) { f.set(cluster, &followed{problem: err.Error()}) }

func (f *Fleet) set(cluster string, to *followed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[cluster] = to
	up := 0.0
	if to.shown != nil {
		up = 1
	}
	f.up.WithLabelValues(cluster).Set(up)
}

// Remove forgets the cluster.
func (f *Fleet) Remove(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, cluster)
	f.up.DeleteLabelValues(cluster)
}

// all are the clusters, by their names.
func (f *Fleet) all() map[string]*followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.of)
}

// Handler serves /metrics, /statusz, /healthz and /readyz of all clusters. A cluster that is not followed is neither
// unhealthy nor unready: what ends a pod, or holds an update up, would hit the others, and it is tried again anyway.
func (f *Fleet) Handler() http.Handler {
	metrics := func(w http.ResponseWriter, r *http.Request) {
		gatherers := prometheus.Gatherers{f.registry}
		for _, c := range f.all() {
			if c.shown != nil {
				gatherers = append(gatherers, c.shown.registry)
			}
		}
		promhttp.HandlerFor(gatherers, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	}
	ready := func(w http.ResponseWriter, _ *http.Request) {
		var waiting []string
		all := f.all()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			switch c := all[name]; {
			case c.shown == nil && c.problem == "":
				waiting = append(waiting, fmt.Sprintf("cluster %s: has not started", name))
			case c.shown != nil:
				for _, problem := range unready(c.shown.ready()) {
					waiting = append(waiting, fmt.Sprintf("cluster %s: %s", name, problem))
				}
			}
		}
		answer(w, waiting)
	}
	return serve(http.HandlerFunc(metrics), func() []string { return nil }, ready, func() any { return f.Status() })
}

// FleetStatus is the document at /statusz of several clusters.
type FleetStatus struct {
	Clusters map[string]ClusterStatus `json:"clusters"`
}

// ClusterStatus is a cluster's, with its own document where it is followed.
type ClusterStatus struct {
	Followed bool    `json:"followed"`
	Problem  string  `json:"problem,omitempty"` // of the last attempt to follow it
	Status   *Status `json:"status,omitempty"`
}

// Status is how things stand now.
func (f *Fleet) Status() FleetStatus {
	status := FleetStatus{Clusters: map[string]ClusterStatus{}}
	for name, c := range f.all() {
		one := ClusterStatus{Followed: c.shown != nil, Problem: c.problem}
		if c.shown != nil {
			one.Status = new(c.shown.Status())
		}
		status.Clusters[name] = one
	}
	return status
}
