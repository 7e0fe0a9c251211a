package schema

import "github.com/kubecdc/kubecdc/internal/change"

// begin is what a snapshot is about to do.
func (b book) begin() definition {
	return b.fields("a list is about to be compared with the inventory", definition{
		"resourceVersion": described(version(), "of the list"),
		"reason":          reasons(func(change.Reason) bool { return true }),
		"limits":          b.limits(),
	}, "limits")
}

// end is what a snapshot did.
func (b book) end() definition {
	return b.fields("a list was compared with the inventory", definition{
		"resourceVersion": described(version(), "of the list"),
		"reason":          reasons(func(change.Reason) bool { return true }),
		"replaced":        described(count(), "objects that were new or changed"),
		"deleted":         described(count(), "objects that were gone"),
		"synced":          described(count(), "objects that were unchanged and sent again"),
		"limits":          b.limits(),
	}, "limits")
}

// limits say which objects a snapshot is of.
func (b book) limits() definition {
	return b.fields("a requested snapshot is of these objects only; missing if it is of all", definition{
		"namespace": name(),
		"name":      name(),
		"selector":  described(name(), "of labels"),
	}, "namespace", "name", "selector")
}

// gap is what a gap says: states of objects between two versions may be missing, or one object was refused by the sink.
func (b book) gap() definition {
	return b.fields("changes between two versions may be missing", definition{
		"reason":          reasons(func(r change.Reason) bool { return r.Gap() || r == change.Policy }),
		"lastDelivered":   described(definition{"type": "string"}, "the version that was delivered last; empty if nothing was delivered"),
		"resourceVersion": described(version(), "the version from which on everything is delivered again"),
		"since":           described(timestamp(), "when the stream was last known to be whole"),
		"rejected":        described(name(), "why the record is not in the sink: too_large, invalid, filter, unreadable or redaction"),
		"deadLetter":      described(name(), "the id of the dead letter that keeps the record"),
	}, "since", "rejected", "deadLetter")
}
