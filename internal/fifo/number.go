package fifo

import "github.com/kubecdc/kubecdc/internal/change"

// Numberer gives records their Seq. The zero value starts at 1.
type Numberer struct{ last uint64 }

// Number sets the record's Seq to the next number.
func (n *Numberer) Number(rec *change.Record) {
	n.last++
	rec.Seq = n.last
}
