package console

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/kubecdc/kubecdc/internal/control"
)

// PrintOwed writes a table of the snapshots that are owed.
func PrintOwed(owed []control.Owed, out io.Writer) error {
	table := newGrid(out)
	table.row("ID", "RESOURCE", "SINK", "REASON", "STATE", "PROGRESS")
	for i := range owed {
		o := &owed[i]
		table.row(o.ID, whatOf(o), o.Sink, o.Reason, o.State, progressOf(o))
	}
	return table.Flush()
}

// EncodeOwed writes one JSON object per line.
func EncodeOwed(owed []control.Owed, out io.Writer) error {
	encoder := json.NewEncoder(out)
	for i := range owed {
		if err := encoder.Encode(&owed[i]); err != nil {
			return err
		}
	}
	return nil
}

// whatOf is the resource, and which objects of it, where that is not all.
func whatOf(o *control.Owed) string {
	if limits := o.Limits.String(); limits != "" {
		return o.Stream + ", " + limits
	}
	return o.Stream
}

// reasonOf says also that it is paused.
func reasonOf(o *control.Owed) string {
	if o.State == control.Paused {
		return o.Reason + ", " + o.State
	}
	return o.Reason
}

// progressOf is in percent, where that is known.
func progressOf(o *control.Owed) string {
	switch {
	case o.Percent != nil:
		return fmt.Sprintf("%d%%", *o.Percent)
	case o.State == control.Reads || o.State == control.Delivers:
		return fmt.Sprintf("%d objects", o.Objects)
	}
	return "-"
}
