package e2e

// frameOf is a frame of a full snapshot that a sink is owed, at its place in the log.
type frameOf struct {
	kind, namespace string
	place           int
	whole           bool // from here on the sink has everything of the stream
}

// findFrames notes the frames by which a sink is whole, or not any more. After a gap it is not before all is compared,
// and then it is what it was before.
func (j *restartJudge) findFrames(events []event) {
	whole := map[string]bool{} // by stream, whether the sink lacks nothing but what a comparison brings
	for i := range events {
		e := &events[i]
		stream, owed := e.kind()+" "+e.Namespace, e.Reason == "lost"
		note := func(whole bool) { j.frames = append(j.frames, frameOf{e.kind(), e.Namespace, e.place, whole}) }
		switch {
		case e.UID != "" || e.Name != "":
		case e.op() == "snapshot.end" && (owed || isComparison(e.Reason)):
			whole[stream] = owed || e.Reason == "initial" || whole[stream]
			note(whole[stream])
		case owed && (e.op() == "gap" || e.op() == "snapshot.begin"):
			whole[stream] = false
			note(false)
		case isComparison(e.Reason) && e.op() == "snapshot.begin":
			note(false)
		}
	}
}

// isIncomplete says whether the sink is still to be told what there is of the record's stream: the watch goes on
// meanwhile, and may tell it of the end of an object that it never knew.
func (j *restartJudge) isIncomplete(e *event) bool {
	incomplete, found := false, false
	for _, f := range j.frames {
		if f.kind != e.kind() || f.namespace != "" && f.namespace != e.Namespace {
			continue
		}
		if f.place > e.place && !e.scattered() {
			return incomplete || !found && !f.whole
		}
		if found, incomplete = true, !f.whole; incomplete && e.scattered() {
			return true // the partitions have no order between them
		}
	}
	return incomplete
}
