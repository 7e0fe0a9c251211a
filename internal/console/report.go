package console

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/verify"
)

// Reports prints them.
type Reports struct {
	Out  io.Writer
	JSON bool
}

func (r *Reports) Note(format string, args ...any) {
	if !r.JSON {
		fmt.Fprintf(r.Out, format+"\n", args...)
	}
}

// mostShown is how many differences of a sink a person is shown.
const mostShown = 200

func (r *Reports) Show(d *verify.Report) (err error) {
	if r.JSON {
		return json.NewEncoder(r.Out).Encode(d)
	}
	out := bufio.NewWriter(r.Out)
	defer func() { err = errors.Join(err, out.Flush()) }()
	fmt.Fprintf(out, "sink %s (%s): %d records read\n", d.Sink, d.Kind, d.Records-d.Foreign)
	if err := printStreams(d, out); err != nil {
		return err
	}
	if err := printDifferences(d, out); err != nil {
		return err
	}
	if d.Note != "" && !d.Undecided {
		fmt.Fprintf(out, "note: %s\n", d.Note)
	}
	if d.Equal {
		fmt.Fprintf(out, "equal: %d objects\n", d.EqualObjects())
	}
	return nil
}

func printStreams(d *verify.Report, out io.Writer) error {
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

func printDifferences(d *verify.Report, out io.Writer) error {
	table := newGrid(out)
	shown := 0
	for _, row := range d.Streams {
		for _, one := range row.Differences {
			if shown++; shown > mostShown {
				continue
			}
			key, has := change.Key{Namespace: one.Namespace, Name: one.Name}, "sink "+cmp.Or(one.SinkVersion, "-")
			if one.Place != "" {
				has += " in " + one.Place
			}
			table.row(one.Kind, one.Stream, key, "cluster "+cmp.Or(one.ClusterVersion, "-"), has)
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
