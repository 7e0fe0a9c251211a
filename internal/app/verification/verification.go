package verification

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/kubecdc/kubecdc/internal/observe/console"
	"github.com/kubecdc/kubecdc/internal/observe/verify"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// Run compares one sink after the other. It returns a *differsError where it has found differences.
func Run(ctx context.Context, o Options, out *console.Reports) error {
	cfg := o.Config
	cluster.NewLogger(io.Discard, cfg.Log)
	c, err := cluster.Find(ctx, o.Access, cfg)
	if err != nil {
		return err
	}
	if err := c.Identify(ctx); err != nil {
		return err
	}
	if _, err := c.Resolve(ctx, c.Rest, cfg.Resources); err != nil {
		return err
	}
	for _, left := range c.Chosen.Load().Waiting() {
		out.Note("resource %s is left out: %s", left.Name, left.Reason)
	}
	streams, err := c.Called(o.Resources)
	if err != nil {
		return err
	}
	return o.each(out, func(s *config.Sink) (differences int, err error) {
		found, err := (&verification{Options: o, sink: s, uid: c.UID}).compareSink(ctx, c, streams)
		if err != nil {
			return 0, err
		}
		if err = out.Show(found); err == nil && found.Undecided {
			err = fmt.Errorf("sink %s: %s", s.Name, found.Note)
		}
		return found.Differences(), err
	})
}

// Offline holds the log of each sink against what it says of itself. It asks no API server, unless only that knows
// where the sink writes to. It returns a *DiffersError where it has found digests that are others.
func Offline(ctx context.Context, o Options, out *console.Reports) error {
	return o.each(out, func(s *config.Sink) (differences int, err error) {
		log := verify.NewDigests()
		reader, err := destination.Open(ctx, o.Access, o.Config, s, sink.Start{})
		if err == nil {
			err = errors.Join(reader.Read(ctx, log.Take), reader.Close())
		}
		found := log.Report()
		if err == nil && found.Digests == 0 {
			err = errors.New("its log has no digests to compare; set resolved: {every: 10s, digest: true} for it, and wait for two records of what is resolved")
		}
		if err != nil {
			return 0, fmt.Errorf("sink %s: %w", s.Name, err)
		}
		found.Sink, found.Kind = s.Name, s.Kind()
		for _, one := range found.Mismatch {
			differences += one.Times
		}
		return differences, out.ShowDigests(&found)
	})
}

// each compares one sink after the other. What could not be compared counts for more than what differs.
func (o *Options) each(out *console.Reports, compare func(*config.Sink) (differences int, err error)) error {
	var errs []error
	differences := 0
	for i := range o.Config.Sinks {
		s := &o.Config.Sinks[i]
		if s.Kind() == config.KindStdout && len(o.Config.Sinks) > 1 && o.AllSinks {
			out.Note("sink %s is standard output, which cannot be read back: it is left out", s.Name)
			continue
		}
		n, err := compare(s)
		differences, errs = differences+n, append(errs, err)
	}
	if err := usage.Several("verify", errs...); err != nil || differences == 0 {
		return err
	}
	return &DiffersError{differences}
}

// DiffersError is what was found, and no failure of ours.
type DiffersError struct{ n int }

func (e *DiffersError) Error() string {
	if e.n == 1 {
		return "verify found 1 difference"
	}
	return fmt.Sprintf("verify found %d differences", e.n)
}

// Options are what is to be compared, and whose saved position proves what.
type Options struct {
	Access    cluster.Access
	Config    *config.Config
	Resources []string // as --resources names them; none is all
	AllSinks  bool     // nobody has named one of them
	Client    func() (*control.Client, error)
	StateDir  string        // of the exporter, if it does not run
	Timeout   time.Duration // how long to wait until differences are proven
}

// verifyPoll is how often the sink is read on while differences may still be on their way.
const verifyPoll = 500 * time.Millisecond

// verification compares the streams of one sink.
type verification struct {
	Options
	sink    *config.Sink
	server  *source.Client
	uid     string // the cluster's
	streams []*compared
	reader  sink.Reader
	log     *verify.Log
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
func (v *verification) compareSink(ctx context.Context, c *cluster.Cluster, streams []selection.Selected) (*verify.Report, error) {
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
func (v *verification) compare(ctx context.Context) (*verify.Report, error) {
	for _, s := range v.streams {
		var err error
		if s.list, err = v.read(ctx, s, ""); err != nil {
			return nil, err
		}
	}
	deadline := time.Now() // set after the first read, which may take long
	for first := true; ; first = false {
		at, err := exporterProgressOf(ctx, v.Client, v.StateDir, v.uid)
		if err != nil {
			return nil, err
		}
		if err := v.reader.Read(ctx, v.log.Take); err != nil {
			return nil, err
		}
		if first {
			deadline = time.Now().Add(v.Timeout)
		}
		decided, err := v.judge(ctx, at)
		if err != nil {
			return nil, err
		}
		if decided || !time.Now().Before(deadline) {
			return v.confirm(ctx, at)
		}
		if !sink.Pause(ctx, verifyPoll, nil) {
			return nil, context.Cause(ctx)
		}
	}
}

// judge compares every stream with its list, looks for a proof of what differs, and says whether all is proven. at was
// found out before the sink was read.
func (v *verification) judge(ctx context.Context, at *exporterProgress) (decided bool, err error) {
	decided = true
	for _, s := range v.streams {
		s.result = verify.Compare(v.log, s.list)
		if len(s.result.Differences) == 0 || s.proven {
			continue
		}
		if s.proven, err = v.prove(ctx, s, at); err != nil {
			return false, err
		}
		decided = decided && s.proven
	}
	return decided, nil
}

// prove says whether everything up to the list was in the sink when it was read: the exporter's saved position says
// what every sink holds (I1). Where the position is below the list, the differences that are there at the position are
// proven.
func (v *verification) prove(ctx context.Context, s *compared, at *exporterProgress) (bool, error) {
	stands := at.of(v.sink.Name, s.Stream.String())
	switch {
	case !stands.Known || stands.Position == "" || stands.Owed:
		return false, nil
	case !at.running || change.CompareVersions(stands.Position, s.list.Version) >= 0:
		return true, nil
	}
	if s.tried != stands.Position {
		then, err := v.read(ctx, s, stands.Position)
		if _, isGone := errors.AsType[*source.ExpiredError](err); isGone {
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
func (v *verification) confirm(ctx context.Context, at *exporterProgress) (*verify.Report, error) {
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
		found.Add(s.result, s.proven, at.of(v.sink.Name, s.Stream.String()), v.Timeout)
	}
	return found, nil
}

// read lists the stream as the server has it now, or had it exactly at the version.
func (v *verification) read(ctx context.Context, s *compared, exactly string) (*verify.List, error) {
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

// exporterProgress is how far the exporter has come, as its saved state says.
type exporterProgress struct {
	*control.State // nil is not known
	running        bool
}

// of is how far it has come with one stream of a sink.
func (s *exporterProgress) of(sink, stream string) verify.Progress {
	if s.State == nil {
		return verify.Progress{}
	}
	at := s.Streams[stream].Sinks[sink]
	if at.Comparing != "" { // it proves nothing
		at.ResourceVersion = ""
	}
	owed := slices.ContainsFunc(s.Owed, func(o control.Owed) bool { return o.Sink == sink && o.Stream == stream })
	return verify.Progress{Known: true, Position: at.ResourceVersion, Owed: owed}
}

// exporterProgressOf asks the running exporter, or reads what a stopped one left. It is not known where there is no
// state, or one of another cluster.
func exporterProgressOf(ctx context.Context, find func() (*control.Client, error), stateDir, uid string) (*exporterProgress, error) {
	state, running, err := saved.Read(ctx, find, stateDir)
	if errors.Is(err, checkpoint.ErrNoState) || err == nil && state.ClusterUID != uid {
		return new(exporterProgress), nil
	}
	return &exporterProgress{state, running}, err
}
