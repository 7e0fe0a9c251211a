package console

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
)

func PrintState(s *control.State, out io.Writer) error {
	fmt.Fprintf(out, "cluster %s, uid %s\n\n", s.Cluster, s.ClusterUID)
	table := newGrid(out)
	table.row("STREAM", "RESOURCEVERSION", "COMPLETE", "OBJECTS", "SELECTOR")
	complete := true
	for _, name := range slices.Sorted(maps.Keys(s.Streams)) {
		p := s.Streams[name]
		complete = complete && (p.Complete || p.ResourceVersion == "")
		table.row(name, p.ResourceVersion, p.Complete, p.Objects, p.Selector)
	}
	if !complete {
		table.row("COMPLETE false: more changes of the same version may follow, so the watch goes on one version below. Nothing is wrong.")
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
	if len(s.Absent) > 0 {
		table.gap()
		table.row("SINK", "MISSES", "SINCE")
	}
	for _, absent := range s.Absent {
		table.row(absent.Sink, absent.Stream, absent.Since.Format(time.RFC3339))
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
