package checkpoint

import "github.com/kubecdc/kubecdc/internal/change"

// heir writes what a stream inherits beside the objects. It is exact where it goes on where the other stream was.
type heir struct {
	*writer
	inheritance
	exact bool
}

// standing writes the position, and what the heir has of each sink.
func (h *heir) standing(sinks []string) error {
	position, _, err := streams{h.db}.Position(h.from)
	if err != nil {
		return err
	}
	if !h.exact {
		own, _, err := streams{h.db}.Position(h.to)
		if err != nil {
			return err
		}
		position = older(own, position)
	}
	if position != (change.Position{}) {
		h.set(positionKey(h.to), appendPosition(nil, position))
	}
	if err := h.resource(); err != nil {
		return err
	}
	if deletes, err := readEnded(h.db, h.from); err != nil {
		return err
	} else if h.exact && deletes.version != "" {
		h.set(endedKey(h.to), deletes.value())
	}
	for _, name := range sinks {
		if err := h.ofSink(name); err != nil {
			return err
		}
	}
	return nil
}

// resource writes of which resource the heir is: should nobody begin to read it in this life, it is still to be found
// whose objects they are.
func (h *heir) resource() error {
	for _, keyOf := range []func(string) []byte{resourceKey, definedKey} {
		if _, known, err := h.db.get(keyOf(h.to)); known || err != nil {
			return err
		}
		value, found, err := h.db.get(keyOf(h.from))
		if err != nil {
			return err
		}
		if found {
			h.set(keyOf(h.to), value)
		}
	}
	return nil
}

// absencesOf makes sinks miss the heir that miss the other stream.
func (h *heir) absencesOf(sinks []string) error {
	for _, name := range sinks {
		if err := h.absence(Subscription{name, h.from}, Subscription{name, h.to}, false); err != nil {
			return err
		}
	}
	return nil
}

// older is the position of a stream whose objects are those of two positions. What is told between the two is told of
// some of the objects only, as in a reconcile.
func older(a, b change.Position) change.Position {
	p := a
	if a == (change.Position{}) || b != (change.Position{}) && change.CompareVersions(b.ResourceVersion, a.ResourceVersion) < 0 {
		p = b
	}
	if p == (change.Position{}) {
		return p
	}
	switch p = p.Interrupt(); {
	case a.Initial() || b.Initial():
		p.Selector = change.InitialPosition("", "", change.Interrupted).Selector
	case a.Compared() || b.Compared():
		p.Selector = change.ComparedPosition("", "", change.Interrupted).Selector
	}
	if a.Epoch != b.Epoch && a != (change.Position{}) && b != (change.Position{}) {
		p.Epoch = change.Interrupted
	}
	return p
}

// ofSink writes what the heir has of one sink: its subscription, what it is owed, its absence, and the positions that
// its log is compared with. An heir that has several inheritances has the subscriptions that all of them had.
func (h *heir) ofSink(sinkName string) error {
	from, to := Subscription{sinkName, h.from}, Subscription{sinkName, h.to}
	inPart, err := h.subscription(from, to)
	if err != nil {
		return err
	}
	return inOrder(
		func() error { return h.pendingOf(from, to) },
		func() error { return h.absence(from, to, inPart) },
		func() error { return h.replayBase(from, to) },
	)
}

// subscription says whether the sink had only one of the two streams, and so is not subscribed to the heir.
func (h *heir) subscription(from, to Subscription) (inPart bool, err error) {
	all, err := subscriptions{h.db}.Subscriptions()
	if err != nil {
		return false, err
	}
	known := false
	for subscription := range all {
		known = known || subscription.Stream == to.Stream
	}
	switch {
	case all[from] && (h.exact || !known):
		h.set(subscriptionKey(to), nil)
	case !all[from] && all[to]: // it lacks a part of the objects
		h.remove(subscriptionKey(to))
		inPart = true
	case all[from] && !all[to]:
		inPart = true
	}
	return inPart, nil
}

// pendingOf makes the heir owe what was owed. The snapshot of a part goes on where it was, and that of the whole begins
// anew. One of a namespace that the heir does not have stays owed where it was: the heir would read what is not its
// own.
func (h *heir) pendingOf(from, to Subscription) error {
	all, err := pendingSnapshots{h.db}.PendingSnapshots()
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.Sink != from.Sink || d.Stream != from.Stream || h.lacks(d.Limits) {
			continue
		}
		own, err := h.pendingSnapshots.find(to, d.Owed)
		if err != nil {
			return err
		}
		own.owed.Generation = max(own.owed.Generation, d.Generation)
		if own.owed.After = ""; h.exact {
			own.owed.After = d.After
		}
		if own.set(owed); d.Paused {
			own.set(paused)
		}
	}
	h.pendingSnapshots.close()
	return nil
}

// absence makes a sink that misses a part of the heir's objects miss the heir, from the oldest version on that it may
// lack anything of. A sink that had the heir only in part is absent since no time: see Absence.
func (h *heir) absence(from, to Subscription, inPart bool) error {
	absence, absent, err := h.absences.saved.of(from)
	if err != nil {
		return err
	}
	own, ownAbsent, err := h.absences.saved.of(to)
	switch {
	case err != nil || !absent && !ownAbsent && !inPart:
		return err
	case !absent && !ownAbsent:
		absence = Absence{}
	case !h.exact:
		if !absent || ownAbsent && !own.InPart() && (absence.InPart() || own.Since.Before(absence.Since)) {
			absence.Since = own.Since
		}
		if nothing := (change.Position{}); absent && absence.From == nothing || ownAbsent && own.From == nothing {
			absence.From = nothing // it lacks a part from its beginning on
		} else {
			absence.From = older(own.From, absence.From)
		}
		absence.Returning = (!absent || absence.Returning) && (!ownAbsent || own.Returning)
	}
	absence.Subscription = to
	h.absences.set(&absence)
	return nil
}

// replayBase writes the position that the sink's log is compared with, where that is an earlier one.
func (h *heir) replayBase(from, to Subscription) error {
	base, based, err := subscriptions{h.db}.replayBase(from)
	if err != nil {
		return err
	}
	own, ownBased, err := subscriptions{h.db}.replayBase(to)
	if err != nil || !based && !ownBased {
		return err
	}
	if !h.exact {
		base = older(own, base)
	}
	h.set(replayBaseKey(to), appendPosition(nil, base))
	return nil
}

// leaveNothing forgets the stream that the heir has taken everything of. What it is of stays, for what is on disk.
func (h *heir) leaveNothing(sinks []string) error {
	for _, name := range sinks {
		subscription := Subscription{name, h.from}
		h.leave(subscription)
		h.remove(replayBaseKey(subscription))
	}
	h.drop(h.from)
	return nil
}
