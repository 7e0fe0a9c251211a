package sim

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// matters is what of an object matters where half of all updates do not, false where the object does not say it.
func matters(object string) (odd, known bool) {
	_, salt, _ := strings.Cut(object, `,"salt":`)
	n, err := strconv.Atoi(strings.TrimSuffix(salt, "}"))
	return n%2 == 1, err == nil
}

// isIgnored says whether an update differs in nothing that matters.
func isIgnored(rec *change.Record) bool {
	before, known := matters(string(rec.Before))
	after, also := matters(string(rec.Object))
	return known && also && before == after
}

// ignored says whether the event differs in nothing that matters from what the sink was told last, so that nobody need
// have told of it.
func (v *verdict) ignored(history []event, last *told, ev *event) bool {
	if !v.judge.world.script.Half || ev.what != "MODIFIED" || ev.uid != last.uid {
		return false
	}
	after, _ := matters(ev.body)
	return slices.ContainsFunc(history, func(was event) bool {
		before, _ := matters(was.body)
		state := last.op == "gap" || last.op == "deleted" || isOf(last.data, was.body) // of the first two it is not said
		return was.uid == last.uid && was.rev == last.rev && state && before == after
	})
}

// ignoredFirst says whether the event differs in nothing that matters from the state before it, and the sink was not
// told of the object yet: the full snapshot that it is still to get tells of what the others were told before.
func (v *verdict) ignoredFirst(history []event, last, t *told, ev *event) bool {
	if !v.judge.world.script.Half || ev.what != "MODIFIED" || last.id != "" || !v.owed(t) {
		return false
	}
	after, _ := matters(ev.body)
	for _, was := range slices.Backward(history) {
		if was.uid == ev.uid && was.timeline == ev.timeline && was.rev < ev.rev {
			before, _ := matters(was.body)
			return before == after
		}
	}
	return false
}
