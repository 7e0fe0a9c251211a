package config

import (
	"strconv"
	"strings"
)

// ClusterOf is one of several clusters that one exporter follows, and how to reach its API server. Where nothing says
// that, it is found as for a single cluster.
type ClusterOf struct {
	Name       string `key:"name" need:"a name such as prod-eu1, which is that of the cluster in records and topics"`
	Kubeconfig string `key:"kubeconfig"` // a file
	Context    string `key:"context"`
	Secret     string `key:"secret" like:"secret"` // with the kubeconfig, as namespace/name, where the exporters run

	// Read tells what the kubeconfig was when it was read last from what it was before; "" is unknown.
	Read string
}

// Task is what one exporter at a time does: a cluster, or a share of its resources.
type Task struct {
	Cluster ClusterOf // the zero value is the only one
	Number  int       // among those of the cluster, from 1
	Count   int       // of those; 0 is that the cluster is not spread over tasks
}

// What stands for a cluster's name and a task's number in values.
const (
	clusterName = "{cluster}"
	taskNumber  = "{task}"
)

// Name tells the task from the others of the configuration: prod-eu1, prod-eu1.2, or 2 of a single cluster.
func (t *Task) Name() string {
	parts := []string{t.Cluster.Name}
	if t.Count > 0 {
		parts = append(parts, strconv.Itoa(t.Number))
	}
	return strings.TrimPrefix(strings.Join(parts, "."), ".")
}

// After is what the number adds to a name that the first task has without it, such as the one of a log that an exporter
// with one task has written.
func (t *Task) After(separator string) string {
	if t.Number < 2 {
		return ""
	}
	return separator + strconv.Itoa(t.Number)
}
