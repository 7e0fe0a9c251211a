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

// Fleet shows several tasks of one exporter, each as its own Telemetry has it, and those that it cannot do now. Its
// methods may be called from any goroutine.
type Fleet struct {
	registry *prometheus.Registry
	up       *prometheus.GaugeVec
	// Unowned, where exporters share tasks, are those that none has. It is set before anything is shown.
	Unowned func() []string

	mu sync.Mutex // guards the following
	of map[string]*followed
}

// followed is one of the tasks.
type followed struct {
	shown   *Telemetry // nil while nothing is followed
	problem string     // why it is not; "" is not known yet
}

// NewFleet is one of no tasks.
func NewFleet() *Fleet {
	up := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubecdc_task_up", Help: "1 where this exporter does the task or stands by for it, 0 where its last attempt to begin has failed."}, []string{"task"})
	f := &Fleet{registry: prometheus.NewRegistry(), up: up, Unowned: func() []string { return nil }, of: map[string]*followed{}}
	unowned := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kubecdc_tasks_unowned", Help: "Tasks that no living exporter does, as this one sees it."}, func() float64 {
		return float64(len(f.Unowned()))
	})
	f.registry.MustRegister(append(ofProcess(), up, unowned)...)
	return f
}

// Add has the task shown, which has not begun.
func (f *Fleet) Add(task string) { f.set(task, &followed{}) }

// Follows shows what the task's Telemetry has.
func (f *Fleet) Follows(task string, t *Telemetry) { f.set(task, &followed{shown: t}) }

// Failed says why the task is not done.
func (f *Fleet) Failed(task string, err error) { f.set(task, &followed{problem: err.Error()}) }

func (f *Fleet) set(task string, to *followed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[task] = to
	up := 0.0
	if to.shown != nil {
		up = 1
	}
	f.up.WithLabelValues(task).Set(up)
}

// Remove forgets the task.
func (f *Fleet) Remove(task string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, task)
	f.up.DeleteLabelValues(task)
}

// all are the tasks, by their names.
func (f *Fleet) all() map[string]*followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.of)
}

// Handler serves /metrics, /statusz, /healthz and /readyz of all tasks. A task that cannot begin is neither
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
				waiting = append(waiting, fmt.Sprintf("task %s: has not started", name))
			case c.shown != nil:
				for _, problem := range unready(c.shown.ready()) {
					waiting = append(waiting, fmt.Sprintf("task %s: %s", name, problem))
				}
			}
		}
		answer(w, waiting)
	}
	return serve(http.HandlerFunc(metrics), func() []string { return nil }, ready, func() any { return f.Status() })
}

// FleetStatus is the document at /statusz of several tasks.
type FleetStatus struct {
	Tasks   map[string]TaskStatus `json:"tasks"`
	Unowned []string              `json:"unowned,omitempty"` // that no living exporter does
}

// TaskStatus is a task's, with its own document where this exporter does it or stands by.
type TaskStatus struct {
	Up      bool    `json:"up"`
	Problem string  `json:"problem,omitempty"` // of the last attempt to begin
	Status  *Status `json:"status,omitempty"`
}

// Status is how things stand now.
func (f *Fleet) Status() FleetStatus {
	status := FleetStatus{Tasks: map[string]TaskStatus{}, Unowned: f.Unowned()}
	for name, c := range f.all() {
		one := TaskStatus{Up: c.shown != nil, Problem: c.problem}
		if c.shown != nil {
			one.Status = new(c.shown.Status())
		}
		status.Tasks[name] = one
	}
	return status
}
