package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/destination"
	"github.com/kubecdc/kubecdc/internal/app/saved"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/observe/verify"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// verifyPoll is how often the sink is read on while differences may still be on their way.
const verifyPoll = 500 * time.Millisecond

// comparison compares the streams of one sink with what the cluster has, while both go on. Comparing itself is pure, in
// package verify.
//
// It lists first and reads the sink then, so the sink is the newer of both. A difference counts only below a saved
// position (I1), or if a second list at exactly the position shows it, too.
type comparison struct {
	target
	sink    *config.Sink
	timeout time.Duration // how long to wait until differences are proven
	server  *source.Client
	uid     string // the cluster's
	streams []*compared
	reader  sink.Reader
	log     *verify.Log

	// What the exporter's saved state says, nil is not known, and whether it runs.
	state   *control.State
	running bool
}

// compared is one stream on its way to a report.
type compared struct {
	selection.Selected
	shape  *shape.Shape // of the resource, nil takes everything
	own    *shape.Shape // the sink's operations, nil takes all of that
	open   bool         // a filter sees what nobody else does: what the resource's rules leave, or the object as it was
	list   *verify.List
	result verify.Result
	proven bool         // the differences are none that are on their way
	then   *verify.List // at the position that was asked for last; nil where the server does not have it any more
	tried  string       // that position
}

// compareSink reads the sink and compares it. The error says why it could not.
func (v *comparison) compareSink(ctx context.Context, c *cluster.Cluster, streams []selection.Selected) (*verify.Report, error) {
	var err error
	if v.server, err = source.NewClient(c.Rest, 1); err != nil {
		return nil, err
	}
	d, err := destination.Of(v.sink, c)
	if err != nil {
		return nil, err
	}
	v.log = verify.NewLog("")
	if d.Shared {
		v.log = verify.NewLog(c.UID)
	}
	wants := c.WantedBy(v.sink)
	for _, stream := range streams {
		if wants != nil && !wants(&stream.Stream) {
			continue
		}
		filter, err := selection.FilterOf(&stream)
		if err != nil {
			return nil, usage.Wrap(err)
		}
		own, err := shape.New(shape.Options{Ops: v.sink.Ops, Failed: func(*change.Record, error) {}})
		if err != nil {
			return nil, usage.Wrap(err)
		}
		v.streams = append(v.streams, &compared{Selected: stream, shape: filter, own: own, open: v.sink.Filter != "" || stream.AsksBefore() || stream.AsksNamespace()})
	}
	if len(v.streams) == 0 {
		return nil, usage.Errorf("sink %s takes none of these resources", v.sink.Name)
	}
	if v.reader, err = destination.NewReader(v.sink, c, sink.Start{}); err != nil {
		return nil, err
	}
	found, err := v.compare(ctx)
	if err = errors.Join(err, v.reader.Close()); err != nil {
		return nil, fmt.Errorf("sink %s: %w", v.sink.Name, err)
	}
	return found, nil
}

// compare lists first and reads then, so that the sink is the newer of both: what it does not have yet may be on its
// way.
func (v *comparison) compare(ctx context.Context) (*verify.Report, error) {
	for _, s := range v.streams {
		var err error
		if s.list, err = v.read(ctx, s, ""); err != nil {
			return nil, err
		}
	}
	deadline := time.Now() // set after the first read, which may take long
	for first := true; ; first = false {
		if err := v.ask(ctx); err != nil {
			return nil, err
		}
		if err := v.reader.Read(ctx, v.log.Take); err != nil {
			return nil, err
		}
		if first {
			deadline = time.Now().Add(v.timeout)
		}
		decided, err := v.judge(ctx)
		if err != nil {
			return nil, err
		}
		if decided || !time.Now().Before(deadline) {
			return v.confirm(ctx)
		}
		if !sink.Pause(ctx, verifyPoll, nil) {
			return nil, context.Cause(ctx)
		}
	}
}

// judge compares every stream with its list, looks for a proof of what differs, and says whether all is proven. How
// far the exporter has come was found out before the sink was read.
func (v *comparison) judge(ctx context.Context) (decided bool, err error) {
	decided = true
	for _, s := range v.streams {
		s.result = verify.Compare(v.log, s.list)
		if len(s.result.Differences) == 0 || s.proven {
			continue
		}
		if s.proven, err = v.prove(ctx, s); err != nil {
			return false, err
		}
		decided = decided && s.proven
	}
	return decided, nil
}

// prove says whether everything up to the list was in the sink when it was read: the exporter's saved position says
// what every sink holds (I1). Where the position is below the list, the differences that are there at the position are
// proven.
func (v *comparison) prove(ctx context.Context, s *compared) (bool, error) {
	stands := v.progress(s.Stream.String())
	switch {
	case !stands.Known || stands.Position == "" || stands.Owed:
		return false, nil
	case !v.running || change.CompareVersions(stands.Position, s.list.Version) >= 0:
		return true, nil
	}
	if s.tried != stands.Position {
		then, err := v.read(ctx, s, stands.Position)
		if source.IsGone(err) {
			then, err = nil, nil
		}
		if err != nil {
			return false, err
		}
		s.then, s.tried = then, stands.Position
	}
	if s.then == nil {
		return false, nil
	}
	both := s.result.Both(verify.Compare(v.log, s.then))
	return len(both.Differences) == len(s.result.Differences), nil // otherwise the rest may be on its way
}

// confirm compares what differs once more, with a list of now: only what differs both times is told.
func (v *comparison) confirm(ctx context.Context) (*verify.Report, error) {
	again := false
	for _, s := range v.streams {
		if len(s.result.Differences) == 0 {
			continue
		}
		again = true
		var err error
		if s.list, err = v.read(ctx, s, ""); err != nil {
			return nil, err
		}
	}
	if again {
		if err := v.reader.Read(ctx, v.log.Take); err != nil {
			return nil, err
		}
	}
	found := &verify.Report{Sink: v.sink.Name, Kind: v.sink.Kind(), Records: v.log.Records, Foreign: v.log.Foreign, Equal: true}
	for _, s := range v.streams {
		if len(s.result.Differences) > 0 {
			s.result = verify.Compare(v.log, s.list).Both(s.result)
		}
		found.Add(s.result, s.proven, v.progress(s.Stream.String()), v.timeout)
	}
	return found, nil
}

// read lists the stream as the server has it now, or had it exactly at the version.
func (v *comparison) read(ctx context.Context, s *compared, exactly string) (*verify.List, error) {
	list := &verify.List{Stream: s.Stream, Deletes: s.tellsDeletes()}
	query := source.Query{Stream: s.Stream, Selection: s.Selection, Exactly: exactly}
	version, err := v.server.List(ctx, query, func() { list.Objects = map[change.Key]verify.Listed{} }, func(rec *change.Record) error {
		list.Objects[rec.Key] = verify.Listed{UID: rec.UID, Version: rec.ResourceVersion, Optional: rec.Withheld != "" || !s.takes(rec), Behind: len(s.Configured.Ignore) > 0}
		return nil
	})
	list.Version = version
	return list, err
}

// takes says whether the sink is told of this version, however it came to be.
func (s *compared) takes(rec *change.Record) bool {
	for _, op := range []change.Op{change.Added, change.Updated, change.Replaced} {
		told := *rec
		told.Op = op
		if s.keepsBack(&told) {
			return false
		}
	}
	return !s.open
}

// keepsBack says whether the filter of the resource, or ops, keep the record from the sink.
func (s *compared) keepsBack(rec *change.Record) bool {
	for _, rules := range []*shape.Shape{s.shape, s.own} {
		if rules != nil && !rec.Filtered {
			rules.Apply(rec)
		}
	}
	return rec.Filtered
}

// tellsDeletes says whether every delete goes to the sink. A filter looks at the last state, which nobody has any more.
func (s *compared) tellsDeletes() bool {
	last := &change.Record{Stream: &s.Stream, Op: change.Deleted}
	return s.TellsDeletes() && !s.open && !s.keepsBack(last)
}

// ask asks the running exporter how far it has come, or reads what a stopped one left. It is not known where there is
// no state, or one of another cluster.
func (v *comparison) ask(ctx context.Context) (err error) {
	v.state, v.running, err = saved.Read(ctx, v.client, v.stateDir)
	if errors.Is(err, checkpoint.ErrNoState) || err == nil && v.state.ClusterUID != v.uid {
		v.state, v.running, err = nil, false, nil
	}
	return err
}

// progress is how far the exporter has come with one stream.
func (v *comparison) progress(stream string) verify.Progress {
	if v.state == nil {
		return verify.Progress{}
	}
	at := v.state.Streams[stream].Sinks[v.sink.Name]
	if at.Comparing != "" { // it proves nothing
		at.ResourceVersion = ""
	}
	isOwed := func(o control.Owed) bool { return o.Sink == v.sink.Name && o.Stream == stream }
	return verify.Progress{Known: true, Position: at.ResourceVersion, Owed: slices.ContainsFunc(v.state.Owed, isOwed)}
}
