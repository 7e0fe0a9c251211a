package redo

import "github.com/kubecdc/kubecdc/internal/change"

// frames is what a log holds of snapshots, by stream.
type frames map[string]framed

// framed is what a log holds of one stream's snapshots: the newest begin and the newest gap.
type framed struct{ begin, gap frame }

// frame is one by its list's version, and its id as text. The zero value is none.
type frame struct{ version, text string }

// note takes the next id, whatever it is of.
func (f frames) note(text string, id change.ID, stream *change.Stream) {
	if id.Key.Name != "" || id.Op != change.SnapshotBegin && id.Op != change.Gap {
		return
	}
	known := f[stream.String()]
	of := &known.begin
	if id.Op == change.Gap {
		of = &known.gap
	}
	if of.text == "" || change.CompareVersions(id.ResourceVersion, of.version) > 0 {
		*of = frame{id.ResourceVersion, text}
		f[stream.String()] = known
	}
}
