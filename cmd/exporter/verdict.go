package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/verify"
)

// verdict is what exporter verify says of one sink, and with -o json its document.
type verdict struct {
	Sink    string       `json:"sink"`
	Kind    string       `json:"kind"`
	Equal   bool         `json:"equal"`
	Records int          `json:"records"` // read from the sink
	Foreign int          `json:"foreign"` // of them, not of this cluster's exporter
	Streams []compareRow `json:"streams"`
	// Undecided says that there are differences which may be on their way.
	Undecided bool `json:"undecided,omitempty"`
	// Note says what stands behind the differences, "" where the exporter's position proves them.
	Note string `json:"note,omitempty"`
}

// compareRow is one stream of a verdict.
type compareRow struct {
	verify.Result
	Position string `json:"position,omitempty"` // the exporter's
	Proven   bool   `json:"proven"`             // the differences, where there are any, are none on their way
}

// add adds the stream. Differences that nobody could prove are told where no exporter could be asked, and are no verdict
// where one runs: it may be about to deliver them.
func (d *verdict) add(s *compared, at *standing, waited time.Duration) {
	row := compareRow{Result: s.result, Position: at.positions[s.stream.String()], Proven: s.proven || len(s.result.Differences) == 0}
	d.Streams = append(d.Streams, row)
	d.Equal = d.Equal && len(s.result.Differences) == 0
	switch {
	case row.Proven:
		return
	case !at.known:
		d.Note = fmt.Sprintf("no exporter's state was found, so the differences are what was there all of %s: name it with --state-dir or --server", waited)
		return
	case at.owes(d.Sink, s.stream.String()):
		d.Note = fmt.Sprintf("not decided: the exporter owes this sink a full snapshot of %s: try again when it is delivered", s.stream)
	default:
		d.Note = fmt.Sprintf("not decided after %s: the exporter stands at resourceVersion %s of %s, and what was listed at %s may be on its way: try again with a longer --timeout",
			waited, cmp.Or(row.Position, "none"), s.stream, row.ResourceVersion)
	}
	d.Undecided = true
}

func (d *verdict) differences() (n int) {
	for _, row := range d.Streams {
		n += len(row.Differences)
	}
	return n
}

func (d *verdict) equal() (n int) {
	for _, row := range d.Streams {
		n += row.Equal
	}
	return n
}

// verdicts prints them.
type verdicts struct {
	out  io.Writer
	json bool
}

func (v *verdicts) note(format string, args ...any) {
	if !v.json {
		fmt.Fprintf(v.out, format+"\n", args...)
	}
}

// mostShown is how many differences of a sink a person is shown.
const mostShown = 200

func (v *verdicts) print(d *verdict) (err error) {
	if v.json {
		return json.NewEncoder(v.out).Encode(d)
	}
	out := bufio.NewWriter(v.out)
	defer func() { err = errors.Join(err, out.Flush()) }()
	fmt.Fprintf(out, "sink %s (%s): %d records read\n", d.Sink, d.Kind, d.Records-d.Foreign)
	if err := d.printStreams(out); err != nil {
		return err
	}
	if err := d.printDifferences(out); err != nil {
		return err
	}
	if d.Note != "" && !d.Undecided {
		fmt.Fprintf(out, "note: %s\n", d.Note)
	}
	if d.Equal {
		fmt.Fprintf(out, "equal: %d objects\n", d.equal())
	}
	return nil
}

func (d *verdict) printStreams(out io.Writer) error {
	table := newGrid(out)
	changing, unjudged := 0, 0
	for _, row := range d.Streams {
		changing, unjudged = changing+row.Changing, unjudged+row.Unjudged
	}
	show := func(cells []any, ofChanging, ofUnjudged any) {
		if changing > 0 {
			cells = append(cells, ofChanging)
		}
		if unjudged > 0 {
			cells = append(cells, ofUnjudged)
		}
		table.row(cells...)
	}
	show([]any{"STREAM", "RESOURCEVERSION", "OBJECTS", "EQUAL", "MISSING", "STALE", "EXTRA"}, "CHANGING", "UNJUDGED")
	for _, row := range d.Streams {
		show([]any{row.Stream, row.ResourceVersion, row.Objects, row.Equal, row.Missing, row.Stale, row.Extra}, row.Changing, row.Unjudged)
	}
	return table.Flush()
}

func (d *verdict) printDifferences(out io.Writer) error {
	table := newGrid(out)
	shown := 0
	for _, row := range d.Streams {
		for _, one := range row.Differences {
			if shown++; shown > mostShown {
				continue
			}
			key := change.Key{Namespace: one.Namespace, Name: one.Name}
			table.row(one.Kind, one.Stream, key, "cluster "+cmp.Or(one.ClusterVersion, "-"), "sink "+cmp.Or(one.SinkVersion, "-"))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if shown > mostShown {
		fmt.Fprintf(out, "and %d more: -o json has all of them\n", shown-mostShown)
	}
	return nil
}
