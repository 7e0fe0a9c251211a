package console

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/kubecdc/kubecdc/internal/control"
)

func PrintState(s *control.State, out io.Writer) error {
	fmt.Fprintf(out, "cluster %s, uid %s\n\n", s.Cluster, s.ClusterUID)
	table := newGrid(out)
	table.row("STREAM", "SINK", "RESOURCEVERSION", "OBJECTS", "COMPARING", "SELECTOR")
	for _, name := range slices.Sorted(maps.Keys(s.Streams)) {
		sinks := s.Streams[name].Sinks
		for _, sink := range slices.Sorted(maps.Keys(sinks)) {
			p := sinks[sink]
			table.row(name, sink, p.ResourceVersion, p.Objects, p.Comparing, p.Selector)
		}
	}
	table.gap()
	table.row("SINK", "MARK")
	for _, name := range slices.Sorted(maps.Keys(s.Marks)) {
		table.row(name, s.Marks[name])
	}
	if len(s.Owed) > 0 {
		table.gap()
		table.row("SINK", "OWED SNAPSHOT OF", "REASON")
	}
	for i := range s.Owed {
		table.row(s.Owed[i].Sink, whatOf(&s.Owed[i]), reasonOf(&s.Owed[i]))
	}
	return table.Flush()
}

func PrintReconciles(found map[string]control.Reconcile, out io.Writer) error {
	table := newGrid(out)
	table.row("STREAM", "REASON", "RESOURCEVERSION", "SYNCED", "REPLACED", "DELETED")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		r := found[name]
		table.row(name, r.Reason, r.ResourceVersion, r.Synced, r.Replaced, r.Deleted)
	}
	return table.Flush()
}
