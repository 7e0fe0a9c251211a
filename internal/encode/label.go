package encode

import (
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/scan"
)

// labelPrefix begins a placeholder of a label: {label:app.kubernetes.io/name}.
const labelPrefix = "label:"

// labelKey is the label that the placeholder names, false where it names none.
func labelKey(placeholder string) (string, bool) {
	key, found := strings.CutPrefix(placeholder, labelPrefix)
	return key, found && key != ""
}

// label is the value of the object's label, "" where it has none. A delete whose last state nobody saw has the labels
// of the last one that was delivered.
func label(key string, rec *change.Record) string {
	text := finalState(rec)
	if !rec.Op.OfObject() || text == nil {
		return ""
	}
	var proof scan.Proof
	proof.Prove(text, "")
	token := proof.Find("metadata", "labels", key)
	if len(token) == 0 || token[0] != '"' {
		return "" // of another form it is none that a selector would find
	}
	return string(scan.Text(token))
}
