package frame

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/scan"
)

// Who writes objects chooses how many entries managedFields has, and how long they are.
const (
	maxActors    = 8
	maxActorText = 512 // bytes of a value, with its quotes
)

// actors are who changed the object last, as the newest entries of managedFields name them. Its memory is used for one
// object after the other.
type actors struct {
	proof  scan.Proof
	newest time.Time
	out    []byte
	n      int
}

// of is a list of JSON with the newest entries, in their order: their manager, operation, subresource and time. It is
// nil where nobody is named.
func (a *actors) of(managedFields []byte) []byte {
	a.proof.Prove(managedFields, "")
	defer a.proof.Forget()
	c := a.proof.Cursor()
	if !a.proof.Whole() || c.Byte() != '[' {
		return nil
	}
	a.newest, a.out, a.n = time.Time{}, append(a.out[:0], '['), 0
	c.Enter()
	for c.Next(']') {
		if c.Byte() == '{' {
			a.take(c)
		}
		c.Skip()
	}
	if a.n == 0 {
		return nil
	}
	return append([]byte(nil), append(a.out, ']')...)
}

// take takes the entry at which the cursor stands, if it is one of the newest.
func (a *actors) take(c scan.Cursor) {
	text := func(member string) []byte {
		found, there, _ := c.Field(member)
		if !there || found.Byte() != '"' {
			return nil
		}
		value := found.Skip()
		if len(value) == len(`""`) || len(value) > maxActorText {
			return nil
		}
		return value
	}
	manager, at := text("manager"), text("time")
	moment, err := time.Parse(time.RFC3339, string(scan.Text(at)))
	if err != nil || manager == nil || !a.counts(moment) {
		return
	}
	a.out = append(append(a.out, `{"manager":`...), manager...)
	for _, member := range []string{"operation", "subresource", "time"} {
		if value := text(member); value != nil {
			a.out = append(append(append(append(a.out, `,"`...), member...), `":`...), value...)
		}
	}
	a.out = append(a.out, '}')
}

// counts says whether nothing that was taken is newer, and forgets what is older.
func (a *actors) counts(moment time.Time) bool {
	switch order := moment.Compare(a.newest); {
	case a.n > 0 && (order < 0 || order == 0 && a.n == maxActors):
		return false
	case a.n == 0 || order > 0:
		a.newest, a.out, a.n = moment, a.out[:1], 0
	default:
		a.out = append(a.out, ',')
	}
	a.n++
	return true
}
