package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
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
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	changing, unjudged := 0, 0
	for _, row := range d.Streams {
		changing, unjudged = changing+row.Changing, unjudged+row.Unjudged
	}
	fmt.Fprint(table, "STREAM\tRESOURCEVERSION\tOBJECTS\tEQUAL\tMISSING\tSTALE\tEXTRA")
	column(table, changing > 0, "\tCHANGING")
	column(table, unjudged > 0, "\tUNJUDGED")
	for _, row := range d.Streams {
		fmt.Fprintf(table, "\n%s\t%s\t%d\t%d\t%d\t%d\t%d", row.Stream, row.ResourceVersion, row.Objects, row.Equal, row.Missing, row.Stale, row.Extra)
		column(table, changing > 0, fmt.Sprintf("\t%d", row.Changing))
		column(table, unjudged > 0, fmt.Sprintf("\t%d", row.Unjudged))
	}
	fmt.Fprintln(table)
	return table.Flush()
}

func column(out io.Writer, there bool, text string) {
	if there {
		fmt.Fprint(out, text)
	}
}

func (d *verdict) printDifferences(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	shown := 0
	for _, row := range d.Streams {
		for _, one := range row.Differences {
			if shown++; shown > mostShown {
				continue
			}
			key := change.Key{Namespace: one.Namespace, Name: one.Name}
			fmt.Fprintf(table, "%s\t%s\t%s\tcluster %s\tsink %s\n", one.Kind, one.Stream, key, cmp.Or(one.ClusterVersion, "-"), cmp.Or(one.SinkVersion, "-"))
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
