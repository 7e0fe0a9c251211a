package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/deadletter"
)

// PrintLetters prints a line for the head of each letter that can be read, and returns an error for what cannot.
func PrintLetters(heads iter.Seq2[*deadletter.Letter, error], asJSON bool, out io.Writer) (n int, err error) {
	table := newGrid(out)
	encoder := json.NewEncoder(out)
	var damaged []error
	for letter, err := range heads {
		switch {
		case err != nil:
			damaged = append(damaged, err)
			continue
		case asJSON:
			err = encoder.Encode(letter)
		default:
			if n == 0 {
				table.row("ID", "SINK", "TIME", "REASON", "STREAM", "OBJECT", "RESOURCEVERSION", "OP", "BYTES")
			}
			table.row(letter.ID, letter.Sink, letter.Time.Format(time.RFC3339), letter.Reason, letter.Stream, letter.ObjectKey(),
				letter.ResourceVersion, letter.Op, max(0, letter.Body.Value))
		}
		if err != nil {
			return n, fmt.Errorf("write the list: %w", err)
		}
		n++
	}
	return n, errors.Join(append(damaged, table.Flush())...)
}

// PrintReplayed prints what became of letters that were sent again, and says how many were kept.
func PrintReplayed(replayed *control.Replayed, out io.Writer) (kept int, err error) {
	table := newGrid(out)
	table.row("ID", "SINK", "STREAM", "OBJECT", "RESOURCEVERSION", "RESULT")
	for _, l := range replayed.Letters {
		result := "delivered"
		switch {
		case !l.Delivered:
			kept++
			result = "kept: " + l.Kept
		case l.LeftOut != "":
			result = "delivered without " + l.LeftOut + ", to fit into the sink"
		}
		table.row(l.ID, l.Sink, l.Stream, l.Object, l.ResourceVersion, result)
	}
	return kept, table.Flush()
}

// PrintLetter prints one letter whole, as JSON, but for what is hidden of Secrets.
func PrintLetter(letter *deadletter.Letter, out io.Writer) error {
	if err := hideLetter(letter); err != nil {
		return err
	}
	document, err := letter.Document()
	if err == nil {
		_, err = out.Write(document)
	}
	return err
}
