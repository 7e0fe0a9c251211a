package redo

import "github.com/kubecdc/kubecdc/internal/change"

// frames is what a log holds of snapshots, by stream.
type frames map[string]framed

// framed is what a log holds of one stream's snapshots: the newest begin, the newest gap, and the end of the snapshot
// that began with that.
type framed struct{ begin, gap, end frame }

// frame is one by its list's version, its snapshot, and its id as text. The zero value is none.
type frame struct{ version, snapshot, text string }

// note takes the next id, whatever it is of.
func (f frames) note(text string, id change.ID, stream *change.Stream) {
	known, next := f[stream.String()], frame{id.ResourceVersion, id.Snapshot, text}
	isNewer := func(than frame) bool {
		return than.text == "" || change.CompareVersions(next.version, than.version) > 0
	}
	switch {
	case id.Key.Name != "":
		return
	case id.Op == change.SnapshotBegin && isNewer(known.begin):
		known.begin = next
	case id.Op == change.Gap && isNewer(known.gap):
		known.gap, known.end = next, frame{}
	case id.Op == change.SnapshotEnd && known.gap.text != "" && id.Snapshot == known.gap.snapshot:
		known.end = next
	default:
		return
	}
	f[stream.String()] = known
}

// endsReconcile says whether everything that a log's tail could tell of the stream was compared with the server.
func endsReconcile(rec *change.Record) bool { return rec.Op == change.SnapshotEnd && rec.Sink == "" }
