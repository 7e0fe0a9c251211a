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
func (a *dueQueue) add(owed change.Owed) {
	if owed.Reason.Full() && slices.Contains(a.due[:a.running], owed) {
		return
	}
	waiting := a.due[a.running:]
	if i := slices.IndexFunc(waiting, owed.Same); i >= 0 {
		waiting[i] = owed
		return
	}
	a.due = append(a.due, owed)
}

// first makes a comparison the first that is due, in the place of one that did not come to its end.
func (a *dueQueue) first(comparison change.Owed) {
	a.dropComparison()
	a.due = slices.Insert(a.due, 0, comparison)
}

// dropComparison forgets what is no full snapshot.
func (a *dueQueue) dropComparison() {
	a.due = slices.DeleteFunc(a.due, func(o change.Owed) bool { return !o.Reason.Full() })
}

// waits says whether anything is due that does not run.
func (a *dueQueue) waits() bool { return len(a.due) > a.running }

// isEmpty says whether nothing is due.
func (a *dueQueue) isEmpty() bool { return len(a.due) == 0 }

// begin returns what is due first: one, or all full snapshots of one reason, which share a list. It stays due until
// done says that it succeeded.
func (a *dueQueue) begin() []change.Owed {
	if len(a.due) == 0 {
		return nil
	}
	first := a.due[0]
	together := func(o change.Owed) bool {
		// each has its own gap
		return o == first || first.Reason.Full() && o.Reason == first.Reason && o.Limits == first.Limits && o.Reason != change.Absent
	}
	slices.SortStableFunc(a.due, func(x, y change.Owed) int {
		switch {
		case together(x) == together(y):
			return 0
		case together(x):
			return -1
		}
		return 1
	})
	a.running = 1
	for a.running < len(a.due) && together(a.due[a.running]) {
		a.running++
	}
	return slices.Clone(a.due[:a.running])
}

// done ends what begin returned, and takes it off the list unless it failed.
func (a *dueQueue) done(failed bool) {
	if !failed {
		a.due = slices.Delete(a.due, 0, a.running)
	}
	a.running = 0
	if failed {
		a.dropOlder()
	}
}

// dropOlder leaves of each pending snapshot the generation that is asked for last: the older one ran, and would now be
// in one snapshot with it.
func (a *dueQueue) dropOlder() {
	var kept []change.Owed
	for i, owed := range a.due {
		if !slices.ContainsFunc(a.due[i+1:], owed.Same) {
			kept = append(kept, owed)
		}
	}
	a.due = kept
}

// drop takes the owed off the list, and says whether any of it is being run.
func (a *dueQueue) drop(owed []change.Owed) (runs bool) {
	dropped := func(o change.Owed) bool { return slices.ContainsFunc(owed, o.Same) }
	running := slices.DeleteFunc(slices.Clone(a.due[:a.running]), dropped)
	waiting := slices.DeleteFunc(slices.Clone(a.due[a.running:]), dropped)
	runs = len(running) < a.running
	a.due, a.running = append(running, waiting...), len(running)
	return runs
}
