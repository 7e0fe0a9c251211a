package change

// Op is what happened. The first six keep the names that client-go's tools/cache gives its delta types.
type Op uint8

const (
	Added         Op = iota + 1 // the watch said ADDED
	Updated                     // the watch said MODIFIED
	Deleted                     // the watch said DELETED, or a reconcile found the object gone
	Replaced                    // a reconcile found the object new or changed
	Sync                        // the object as it is, sent again because a full snapshot was asked for
	Bookmark                    // the stream's position moved; never written to a sink
	SnapshotBegin               // a reconcile starts
	SnapshotEnd                 // a reconcile is complete
	Gap                         // changes between two positions cannot be proven to be delivered
	Actor                       // who asked for a change, as the API server's audit says
)

// String is the operation's name on the wire: "added", "snapshot.begin".
func (o Op) String() string {
	switch o {
	case Added:
		return "added"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	case Replaced:
		return "replaced"
	case Sync:
		return "sync"
	case Bookmark:
		return "bookmark"
	case SnapshotBegin:
		return "snapshot.begin"
	case SnapshotEnd:
		return "snapshot.end"
	case Gap:
		return "gap"
	case Actor:
		return "actor"
	}
	return "unknown"
}

// ParseOp is the inverse of Op.String; it returns 0 for a name that is none.
func ParseOp(name string) Op {
	for op := Added; op <= Actor; op++ {
		if op.String() == name {
			return op
		}
	}
	return 0
}

// OfObject says whether a record of this operation speaks of one object.
func (o Op) OfObject() bool { return o >= Added && o <= Sync }
