package verify

import (
	"cmp"
	"fmt"
	"time"
)

// Report is what exporter verify says of one sink, and with -o json its document.
type Report struct {
	Sink    string `json:"sink"`
	Kind    string `json:"kind"`
	Equal   bool   `json:"equal"`
	Records int    `json:"records"` // read from the sink
	Foreign int    `json:"foreign"` // of them, not of this cluster's exporter
	Streams []Row  `json:"streams"`
	// Undecided says that there are differences which may be on their way.
	Undecided bool `json:"undecided,omitempty"`
	// Note says what stands behind the differences, "" where the exporter's position proves them.
	Note string `json:"note,omitempty"`
}

// Row is one stream of a Report.
type Row struct {
	Result
	Position string `json:"position,omitempty"` // the exporter's
	Proven   bool   `json:"proven"`             // the differences, where there are any, are none on their way
}

// Progress is how far the exporter has come with a stream, as its saved state says.
type Progress struct {
	Known    bool   // the rest is
	Position string // resourceVersion; "" is none
	Owed     bool   // the sink has not got all of a full snapshot
}

// Add adds a stream. Differences that nobody could prove are told where no exporter could be asked, and are no verdict
// where one runs: it may be about to deliver them. Waited is for how long a proof was waited for.
func (r *Report) Add(result Result, proven bool, at Progress, waited time.Duration) {
	equal := len(result.Differences) == 0
	row := Row{Result: result, Position: at.Position, Proven: proven || equal}
	r.Streams = append(r.Streams, row)
	r.Equal = r.Equal && equal
	switch {
	case row.Proven:
		return
	case !at.Known:
		r.Note = fmt.Sprintf("no exporter's state was found, so the differences are what was there all of %s: name it with --state-dir or --server", waited)
		return
	case at.Owed:
		r.Note = fmt.Sprintf("not decided: the exporter owes this sink a full snapshot of %s: try again when it is delivered", result.Stream)
	default:
		r.Note = fmt.Sprintf("not decided after %s: the exporter stands at resourceVersion %s of %s, and what was listed at %s may be on its way: try again with a longer --timeout",
			waited, cmp.Or(row.Position, "none"), result.Stream, row.ResourceVersion)
	}
	r.Undecided = true
}

// Differences is how many there are.
func (r *Report) Differences() (n int) {
	for _, row := range r.Streams {
		n += len(row.Differences)
	}
	return n
}

// EqualObjects is how many objects are the same on both sides.
func (r *Report) EqualObjects() (n int) {
	for _, row := range r.Streams {
		n += row.Result.Equal
	}
	return n
}
