package decode

import (
	"net/url"
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Owner is the cluster whose exporter writes to a log. It tells what the exporter of another one has written there.
type Owner struct {
	Cluster string // its name in the configuration
	// of namespace kube-system: its own, and those that the saved state knows of clusters which had the name before
	UIDs []string
	// Named says that the cluster's name is a part of each destination, so that whatever is there was written under it.
	// Not all formats say the name.
	Named bool
}

// Judge is a sink.Judge.
func (o *Owner) Judge(m *sink.Stored) error {
	id, err := change.ParseAnyID(idText(m))
	if err != nil {
		return nil // nobody's of us
	}
	uid := change.ClusterOf(id.Cluster)
	if slices.ContainsFunc(o.UIDs, func(ours string) bool { return change.SameCluster(uid, ours) }) {
		return nil
	}
	name := clusterName(m)
	return &sink.ForeignError{Place: m.Place, Cluster: name, UID: uid, Ours: o.Cluster, Same: name == o.Cluster || name == "" && o.Named}
}

// clusterName is the name of the cluster that the message was written under, "" where it does not say.
func clusterName(m *sink.Stored) string {
	if name := m.Header(headerKafka + "cluster"); name != "" {
		return name
	}
	if name, err := url.PathUnescape(m.Header(headerNATS + "cluster")); err == nil && name != "" {
		return name
	}
	members := membersOf(m.Value)
	if _, bare := members["kind"]; bare { // an object may have fields of any name
		return ""
	}
	if text(members["specversion"]) != "" {
		return text(members["cluster"])
	}
	return text(membersOf(members["source"])["name"]) // of the envelope
}
