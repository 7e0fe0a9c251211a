package source

import (
	"slices"

	"github.com/kubecdc/kubecdc/internal/change"
)

// dueQueue is what is due of one kind: what ends the watch, or what is read beside it. It is pure; a schedule guards
// it.
type dueQueue struct {
	due     []change.Owed
	running int // so many of the first are being run
}

// add takes what is wanted. What waits already, or runs for the same generation, is not added again; what waits for an
// older generation is replaced.
func (q *dueQueue) add(owed change.Owed) {
	if owed.Reason.Full() && slices.Contains(q.due[:q.running], owed) {
		return
	}
	waiting := q.due[q.running:]
	if i := slices.IndexFunc(waiting, owed.Same); i >= 0 {
		waiting[i] = owed
		return
	}
	q.due = append(q.due, owed)
}

// first makes a comparison the first that is due, in the place of one that did not come to its end.
func (q *dueQueue) first(comparison change.Owed) {
	q.dropComparison()
	q.due = slices.Insert(q.due, 0, comparison)
}

// dropComparison forgets what is no full snapshot.
func (q *dueQueue) dropComparison() {
	q.due = slices.DeleteFunc(q.due, func(o change.Owed) bool { return !o.Reason.Full() })
}

// waits says whether anything is due that does not run.
func (q *dueQueue) waits() bool { return len(q.due) > q.running }

// isEmpty says whether nothing is due.
func (q *dueQueue) isEmpty() bool { return len(q.due) == 0 }

// begin returns what is due first: one, or all full snapshots of one reason, which share a list. It stays due until
// done says that it succeeded.
func (q *dueQueue) begin() []change.Owed {
	if len(q.due) == 0 {
		return nil
	}
	first := q.due[0]
	together := func(o change.Owed) bool {
		// each has its own gap
		return o == first || first.Reason.Full() && o.Reason == first.Reason && o.Limits == first.Limits && o.Reason != change.Absent
	}
	slices.SortStableFunc(q.due, func(x, y change.Owed) int {
		switch {
		case together(x) == together(y):
			return 0
		case together(x):
			return -1
		}
		return 1
	})
	q.running = 1
	for q.running < len(q.due) && together(q.due[q.running]) {
		q.running++
	}
	return slices.Clone(q.due[:q.running])
}

// done ends what begin returned, and takes it off the list unless it failed.
func (q *dueQueue) done(failed bool) {
	if !failed {
		q.due = slices.Delete(q.due, 0, q.running)
	}
	q.running = 0
	if failed {
		q.dropOlder()
	}
}

// dropOlder leaves of each pending snapshot the generation that is asked for last: the older one ran, and would now be
// in one snapshot with it.
func (q *dueQueue) dropOlder() {
	var kept []change.Owed
	for i, owed := range q.due {
		if !slices.ContainsFunc(q.due[i+1:], owed.Same) {
			kept = append(kept, owed)
		}
	}
	q.due = kept
}

// drop takes the owed off the list, and says whether any of it is being run.
func (q *dueQueue) drop(owed []change.Owed) (runs bool) {
	dropped := func(o change.Owed) bool { return slices.ContainsFunc(owed, o.Same) }
	running := slices.DeleteFunc(slices.Clone(q.due[:q.running]), dropped)
	waiting := slices.DeleteFunc(slices.Clone(q.due[q.running:]), dropped)
	runs = len(running) < q.running
	q.due, q.running = append(running, waiting...), len(running)
	return runs
}
