package listener

import (
	"context"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// trimming takes from one record after the other what makes it too large for the sink, and remembers how far it has
// come with the present one. One goroutine uses it.
type trimming struct {
	out      *outgoing
	trims    []Trim
	original *change.Record // as it came; nil is none
	next     int            // in trims
}

// smaller takes the next thing away from a record that is too large. It returns nil where there is none.
func (t *trimming) smaller(ctx context.Context, rec *change.Record) *change.Record {
	t.begin(rec)
	if bare := t.withoutBefore(ctx, rec); bare != nil {
		return bare
	}
	if smaller := t.trim(rec); smaller != nil {
		return smaller
	}
	return t.withoutState(rec)
}

func (t *trimming) begin(rec *change.Record) {
	if !t.isOf(rec) {
		t.original, t.next = rec, 0
	}
}

// withoutState lets a delete go without the last state of its object, whatever speaks against that: it says all that
// readers need of it, and else the object would be there for them for ever. It returns nil for any other record.
func (t *trimming) withoutState(rec *change.Record) *change.Record {
	if rec.Op != change.Deleted || rec.Object == nil && rec.Before == nil || rec.Remarks != nil && rec.Remarks.BeforeOmitted {
		return nil
	}
	t.begin(rec)
	return withRemarks(rec, func(m *change.Remarks) { m.BeforeOmitted = true })
}

// withoutBefore takes the state before away, where the message has one beside the object. Of a delete it may be all
// that there is.
func (t *trimming) withoutBefore(ctx context.Context, rec *change.Record) *change.Record {
	if rec.Before == nil || rec.Op == change.Deleted {
		return nil
	}
	whole, err := t.out.messageOf(ctx, rec)
	if err != nil {
		return nil
	}
	size := whole.Size()
	bare := withRemarks(rec, func(m *change.Remarks) { m.BeforeOmitted = true })
	bare.Before = nil
	if message, err := t.out.messageOf(ctx, bare); err != nil || message.Size() >= size {
		return nil // the format has no place for it
	}
	return bare
}

// withRemarks is a copy of the record with other remarks.
func withRemarks(rec *change.Record, set func(*change.Remarks)) *change.Record {
	remarked, remarks := *rec, change.Remarks{}
	if rec.Remarks != nil {
		remarks = *rec.Remarks
	}
	set(&remarks)
	remarked.Remarks = &remarks
	return &remarked
}

// trim makes the object smaller by the next cut that takes something away. It returns nil where there is none.
func (t *trimming) trim(rec *change.Record) *change.Record {
	for t.next < len(t.trims) {
		cut := t.trims[t.next]
		t.next++
		object, err := cut.Cut(rec.Object)
		if err != nil || len(object) >= len(rec.Object) {
			continue // nothing is there, or it is no JSON: what does not fit is kept whole
		}
		smaller := withRemarks(rec, func(m *change.Remarks) { m.Trimmed = strings.TrimPrefix(m.Trimmed+","+cut.Path, ",") })
		smaller.Object = object
		return smaller
	}
	return nil
}

// whole is the record as it came, and forgets the cuts.
func (t *trimming) whole(rec *change.Record) *change.Record {
	if t.isOf(rec) {
		rec = t.original
	}
	t.original, t.next = nil, 0
	return rec
}

// isOf says whether the cuts are of the record. Those that were spooled all have a Seq of 0.
func (t *trimming) isOf(rec *change.Record) bool {
	original := t.original
	return original != nil && original.Seq == rec.Seq && original.ID(t.out.clusterUID) == rec.ID(t.out.clusterUID)
}
