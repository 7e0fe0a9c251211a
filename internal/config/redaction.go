package config

import "encoding/json"

// Redaction says which values become keyed hashes. In a file it is a list of paths, or the word none, which lets even
// Secrets go out bare.
type Redaction struct {
	None  bool
	Paths []string
}

const noRedaction = "none"

// MarshalJSON writes the redaction as a file has it.
func (r Redaction) MarshalJSON() ([]byte, error) {
	if r.None {
		return json.Marshal(noRedaction)
	}
	return json.Marshal(r.Paths)
}

// IsZero says whether nothing is set: Secrets are redacted, and nothing else.
func (r Redaction) IsZero() bool { return !r.None && len(r.Paths) == 0 }

func (d *decoder) redaction(into *Redaction) reader {
	return func(path string, n *node) {
		if n == nil || n.kind == sequence {
			d.texts(&into.Paths)(path, n)
			return
		}
		var text string
		d.text(&text)(path, n)
		if into.None = text == noRedaction; !into.None && !d.settled[path] {
			d.problem(path, "want a list of paths such as [.spec.token], or none")
		}
	}
}
