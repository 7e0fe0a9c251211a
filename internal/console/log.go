package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/decode"
	"github.com/kubecdc/kubecdc/internal/page"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Log shows the changes of a sink's log, or those that a running exporter tells of.
type Log struct {
	Printer *Printer
	Filter  Filter
	Since   time.Time     // only what was received then or later
	Poll    time.Duration // between two looks for more; 0 ends at the end
	Diff    bool          // what changed in each object
	Silent  bool          // of what is there at first, the objects are remembered, and nothing is shown

	versions versions
	last     change.ID       // of the message before
	has      map[string]bool // the resources of all messages
}

// Follow shows what the reader has, until ctx ends.
func (l *Log) Follow(ctx context.Context, reader sink.Reader) error {
	l.versions.last, l.has = map[string]told{}, map[string]bool{}
	for {
		err := reader.Read(ctx, l.take)
		l.noteResources()
		err = errors.Join(err, l.Printer.Flush())
		if err != nil || l.Poll == 0 {
			return err
		}
		l.Silent = false
		select {
		case <-time.After(l.Poll):
		case <-ctx.Done():
			return nil
		}
	}
}

// noteResources tells once that the log has nothing of the resources that were asked for. Their names are those that
// records have, and no short ones.
func (l *Log) noteResources() {
	has := slices.Sorted(maps.Keys(l.has))
	if l.has = nil; len(has) > 0 && !slices.ContainsFunc(has, l.Filter.takesResource) {
		l.Printer.Note("nothing here is of %s; there are: %s", strings.Join(l.Filter.Resources, ", "), strings.Join(has, ", "))
	}
}

func (l *Log) take(m *sink.Stored) error {
	c, err := decode.Read(m)
	switch {
	case errors.Is(err, change.ErrForeignID):
		return nil
	case err != nil:
		l.Printer.Note("%v", err)
		return nil
	case c.ID.Op == change.Deleted && m.Value == nil && m.Key != nil && c.Object == nil && l.last == c.ID:
		return nil // the tombstone after a delete
	}
	l.last = c.ID
	line := lineOf(c)
	if l.has != nil {
		l.has[line.Resource] = true
	}
	if l.Diff {
		line.Diff = l.versions.compare(c)
	}
	if l.Silent {
		return nil
	}
	return l.show(line)
}

func (l *Log) show(line *Line) error {
	if !l.Filter.takes(line) || line.Time.Before(l.Since) {
		return nil
	}
	return l.Printer.Show(line)
}

// FollowEvents shows what a running exporter tells, until it ends.
func (l *Log) FollowEvents(events iter.Seq2[control.Event, error]) error {
	for event, err := range events {
		if err != nil {
			return err
		}
		switch event.Name {
		case "private":
			var why string
			if err := json.Unmarshal(event.Data, &why); err != nil {
				why = string(event.Data)
			}
			return errors.New(why)
		case "changes":
			if err := l.showChanges(event.Data); err != nil {
				return err
			}
		case "status":
			if l.Poll == 0 { // the changes before it were told
				return nil
			}
		}
	}
	return nil
}

func (l *Log) showChanges(data []byte) error {
	var told page.Changes
	if err := json.Unmarshal(data, &told); err != nil {
		return fmt.Errorf("read the exporter's changes: %w: use an exporter of this version", err)
	}
	if told.Missed > 0 {
		l.Printer.Note("%d changes came faster than they could be told", told.Missed)
	}
	for _, c := range told.Changes {
		if err := l.show(&Line{
			Time: c.Time, Op: c.Op, Resource: c.Resource, Namespace: c.Namespace, Name: c.Name, ResourceVersion: c.ResourceVersion, Reason: string(c.Reason),
		}); err != nil {
			return err
		}
	}
	return l.Printer.Flush()
}
