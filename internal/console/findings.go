package console

import (
	"encoding/json"
	"fmt"
	"io"
)

// Finding is what a check says of one thing.
type Finding struct {
	Result string `json:"result"` // OK, Note or Problem
	Text   string `json:"text"`
}

// The results of a check.
const (
	OK      = "ok"
	Note    = "note"
	Problem = "problem"
)

// Findings shows them: each as a line at once, or all as one document at the end.
type Findings struct {
	Out  io.Writer
	JSON bool

	all      []Finding
	problems int
}

// Show adds a finding.
func (f *Findings) Show(result, text string) {
	if result == Problem {
		f.problems++
	}
	text = readable(text)
	if f.JSON {
		f.all = append(f.all, Finding{result, text})
		return
	}
	if result != Problem { // whose error is fit to be shown
		text = plain(text)
	}
	fmt.Fprintf(f.Out, "%-8s %s\n", result, text)
}

// End shows the document.
func (f *Findings) End() error {
	if !f.JSON {
		return nil
	}
	encoder := json.NewEncoder(f.Out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		Problems int       `json:"problems"`
		Findings []Finding `json:"findings"`
	}{f.problems, f.all})
}
