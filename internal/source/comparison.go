package source

import (
	"context"

	"github.com/kubecdc/kubecdc/internal/change"
)

// A comparison is a snapshot for all sinks: the initial one, or the one after a gap of reason gone or stale. It begins
// while no watch is open: the line is drained, the gap is told, and the position becomes the server's present version,
// marked as being compared; where the server has just started, the oldest version that it has (remnant.go). From there
// the watch goes on, and moves the marked position. The reader compares page after page beside it (pages.go), and takes
// the mark off at the end. So an interrupted comparison is gone on with at the position that was saved, and no change
// after the first begin is missing (I4).

// compareAll begins a comparison. Where another history is due, it has nothing to compare with.
func (s *Stream) compareAll(ctx context.Context, owed change.Owed) error {
	if s.schedule.awaits(change.Epoch) && s.cursor.position.ResourceVersion != "" {
		s.goesOn = false
		return nil
	}
	if err := s.drain(ctx); err != nil {
		return err
	}
	generation := int64(0)
	if owed.Reason == change.Gone {
		if generation = s.redefined(ctx); generation != 0 {
			owed.Reason = change.Redefined
		}
	}
	position, err := s.startOf(ctx, owed.Reason)
	if err != nil {
		return err
	}
	r := s.newReading([]change.Owed{owed})
	if err := r.announce(ctx, position, s.goesOn); err != nil {
		return err
	}
	if !s.goesOn {
		s.cursor.restart(position)
		s.proof = proof{} // it is after the gap
	}
	if generation != 0 {
		s.generation.Store(generation)
	}
	s.goesOn, r.announced = false, true
	s.schedule.compare(owed)
	return nil
}

// redefined is the generation of the custom resource's definition, where that was changed since the last watch that
// worked, or since the position: the server begins its history of the resource anew then. Other writes of a definition
// leave its generation. 0 is that it was not changed, or that nobody may know.
func (s *Stream) redefined(ctx context.Context) int64 {
	if !IsCustom(s.stream.Resource.String()) {
		return 0
	}
	client := s.origin.collection.client
	now, err := client.defined.get(ctx, freshness{s.origin.trust.asked(), client.maxAge}, func(ctx context.Context) (*Definitions, error) {
		return readDefinitions(ctx, client.rest.Get().MaxRetries(0))
	})
	if err != nil {
		return 0
	}
	one := now.byName[s.stream.Resource.String()]
	for _, version := range []string{s.origin.watched, s.cursor.position.ResourceVersion} {
		if version != "" && change.CompareVersions(one.version, version) > 0 && one.generation != s.generation.Load() {
			return one.generation
		}
	}
	return 0
}

// startOf is the position that a comparison begins at. That of an initial snapshot is saved before anything is told of
// it, so that whatever is changed from here on is told or announced (I4).
func (s *Stream) startOf(ctx context.Context, reason change.Reason) (change.Position, error) {
	failed := reason == change.Initial && s.cursor.position.ResourceVersion != "" // to begin
	if s.goesOn || failed {
		return s.cursor.position, nil
	}
	ask := s.origin.present
	if reason == change.Initial {
		ask = s.origin.watchable
	}
	version, err := ask(ctx)
	if err != nil {
		return change.Position{}, err
	}
	if reason.Forgotten() {
		version = s.remnant.begin(s.cursor.position.ResourceVersion, version)
	}
	if reason != change.Initial && !s.cursor.position.Initial() {
		return change.ComparedPosition(version, s.epoch, s.Selection.String()), nil
	}
	position := change.InitialPosition(version, s.epoch, s.Selection.String())
	if reason != change.Initial {
		return position, nil
	}
	rec := &change.Record{Stream: &s.stream, Op: change.Bookmark, ResourceVersion: version, Position: position}
	if err := s.push(ctx, rec); err != nil {
		return change.Position{}, err
	}
	s.cursor.restart(position)
	return position, s.drain(ctx)
}

// announce tells of the gap, unless the comparison goes on, and of the begin, with which the position is saved. From
// then on it is remembered what the watch tells.
func (r *reading) announce(ctx context.Context, position change.Position, goesOn bool) error {
	r.difference = r.newDifference(r.due, position.ResourceVersion, nil)
	r.difference.gone, r.difference.left, r.difference.goesOn = r.suspect, position, goesOn
	if err := r.difference.begin(ctx); err != nil {
		return err
	}
	r.place = placeAt(position.ResourceVersion, pageSize)
	if !r.recent.on {
		r.recent.begin()
	}
	r.beside = r
	return nil
}

// announceAgain announces a comparison that did not come to its end beside this watch: the list is not sorted.
func (r *reading) announceAgain(ctx context.Context) (step, error) {
	give, err := r.turns.takeIn(ctx)
	if err != nil {
		return nil, err
	}
	defer give()
	r.recent.unmark()
	return r.prepare, r.announce(ctx, r.cursor.position, true)
}
