package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/selection"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/config/usage"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/scan/delta"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/shape/transform"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/sink/deadletter"
)

// deadLetters are the dead letters of this run's sinks.
type deadLetters struct {
	cfg        *config.Config
	dirs       map[string]*deadletter.Dir
	clusterUID string
	forms      *forms
	desk       pipeline.Desk
	busy       sync.Mutex // held while letters are sent again
}

func deadLettersOf(cfg *config.Config, c *cluster.Cluster, f *forms, log *task.StateLog) *deadLetters {
	all := &deadLetters{cfg: cfg, dirs: map[string]*deadletter.Dir{}, clusterUID: c.UID, forms: f, desk: make(pipeline.Desk)}
	for _, s := range cfg.Sinks {
		dir := cmp.Or(s.DeadLetter.Dir, deadletter.DirOf(cfg.State.Dir))
		all.dirs[s.Name] = deadletter.New(deadletter.Options{
			Dir: filepath.Join(dir, s.Name), Sink: s.Name, Cluster: c.Name, ClusterUID: c.UID, Form: f.ofSink(s.Name),
			Bytes: int64(s.DeadLetter.Bytes), Changed: log.Changed(s.Name),
		})
	}
	return all
}

// replay sends letters again, one after the other, so that one at most is in memory for it.
func (l *deadLetters) replay(ctx context.Context, asked control.ReplayRequest) (*control.Replayed, error) {
	if !l.busy.TryLock() {
		return nil, errors.New("another replay of dead letters is running: wait until it ends, then list what is left")
	}
	defer l.busy.Unlock()
	names, err := control.ResolveSink(l.cfg.SinkNames(), asked.Sink)
	if err != nil {
		return nil, err
	}
	chosen, err := l.choose(names, asked.IDs)
	if err != nil {
		return nil, err
	}
	answer := &control.Replayed{Letters: []control.ReplayedLetter{}}
	for _, letter := range chosen {
		done := control.ReplayedLetter{
			Sink: letter.Sink, ID: letter.ID, Stream: letter.Stream, Object: letter.ObjectKey().String(), ResourceVersion: letter.ResourceVersion,
		}
		if leftOut, err := l.send(ctx, letter, asked.Force); err != nil {
			done.Kept = err.Error()
		} else {
			done.Delivered, done.LeftOut = true, leftOut
		}
		answer.Letters = append(answer.Letters, done)
	}
	return answer, nil
}

// choose finds the heads of the letters that are asked for. An id that no letter has is the asker's mistake.
func (l *deadLetters) choose(names, ids []string) ([]*deadletter.Letter, error) {
	var chosen []*deadletter.Letter
	missing := slices.Clone(ids)
	for _, name := range names {
		for letter, err := range l.dirs[name].All() {
			if err != nil {
				return nil, err
			}
			if len(ids) > 0 && !slices.Contains(ids, letter.ID) {
				continue
			}
			missing = slices.DeleteFunc(missing, func(id string) bool { return id == letter.ID })
			letter.Sink = name // whatever it was called when the letter was kept
			chosen = append(chosen, letter)
		}
	}
	if len(missing) > 0 {
		return nil, &control.RefusedError{Text: fmt.Sprintf("no dead letter %s: see exporter deadletter list", deadletter.Quoted(missing))}
	}
	return chosen, nil
}

// send hands one letter to the pipeline and waits for what becomes of it, and what it is sent without.
func (l *deadLetters) send(ctx context.Context, head *deadletter.Letter, force bool) (leftOut string, err error) {
	letter, err := l.dirs[head.Sink].Get(head.ID)
	if err != nil {
		return "", err
	}
	letter.Sink = head.Sink
	rec := letter.Record(l.clusterUID)
	if err := l.forms.reshapeFor(head.Sink, rec); err != nil {
		return "", fmt.Errorf("it was redacted by older rules and cannot be redacted again: %w: delete it, then request the object with exporter snapshot", err)
	}
	type end struct {
		leftOut string
		err     error
	}
	ended := make(chan end, 1)
	rec.Replay = &change.Replay{Letter: letter.ID, Force: force, Done: func(leftOut string, err error) {
		select {
		case ended <- end{leftOut, err}:
		default: // it was told before
		}
	}}
	if err := l.desk.Replay(ctx, rec); err != nil {
		return "", err
	}
	select {
	case end := <-ended:
		return end.leftOut, end.err
	case <-ctx.Done():
		return "", errors.New("it waits in the sink's queue, and is sent when its turn comes")
	}
}

// adoptLetters gives each sink its letters, and brings those on disk into today's form, so that nobody who looks at
// them sees more than consumers do. What cannot be mended is told, and shaped or kept when it is sent again.
func (a *assembly) adoptLetters(ctx context.Context, all *deadLetters, sinks []listener.Sink, f *forms) {
	for i := range sinks {
		s := &sinks[i]
		due := func(head *deadletter.Letter) bool { // what is not configured goes nowhere, and stays
			rec := head.Record(a.cluster.UID)
			today := f.today(rec.Stream, s.Name)
			return rec.Op.OfObject() && today != nil && head.Form != today.Form
		}
		s.DeadLetters = all.dirs[s.Name]
		err := all.dirs[s.Name].Mend(due, func(l *deadletter.Letter) error {
			l.Sink = s.Name // whatever it was called when the letter was kept
			f.reshapeLetter(l, a.cluster.UID, func(rec *change.Record) ([]sink.Message, error) {
				s.Encoder.Reset()
				return s.Encoder.Encode(ctx, nil, rec)
			})
			return nil
		})
		if err != nil {
			a.logger.Warn("dead letters stay redacted by the earlier rules; the current rules apply when they are sent again", "sink", s.Name, "error", err)
		}
	}
}

// narrow gives the sinks their own rules. The sinks are those of the configuration, in its order.
func narrow(sinks []listener.Sink, cfg *config.Config, forms *forms, failed func(*change.Record, error)) error {
	var errs []error
	asks := func(stream *change.Stream) bool {
		today := forms.today(stream, "")
		return today != nil && today.Changes
	}
	for i := range sinks {
		name := sinks[i].Name
		made, err := selection.ShapeForSink(cfg, &cfg.Sinks[i], forms.key, func(rec *change.Record, err error) {
			failed(rec, fmt.Errorf("the rules of sink %s: %w", name, err))
		})
		if errs = append(errs, err); made != nil {
			sinks[i].Narrow = made.Narrowed
		}
		if slices.ContainsFunc(cfg.Resources, func(r config.Resource) bool { return r.Changes }) {
			sinks[i].Narrow = saysChanges(sinks[i].Narrow, asks)
		}
	}
	return usage.Several("sinks", errs...)
}

// saysChanges makes records say what changed, as far as the sink sees it (I9), after the sink's rules; nil is none.
func saysChanges(rules func(*change.Record) *change.Record, asks func(*change.Stream) bool) func(*change.Record) *change.Record {
	var d delta.Delta // of the one goroutine that has the sink
	return func(rec *change.Record) *change.Record {
		narrowed := rec
		if rules != nil {
			narrowed = rules(rec)
		}
		changes := rec.Op == change.Updated || rec.Op == change.Replaced
		if !changes || narrowed.Filtered || narrowed.Withheld != "" || narrowed.Before == nil || narrowed.Object == nil || !asks(rec.Stream) {
			return narrowed
		}
		list, cut, ok := d.Changed(nil, narrowed.Before, narrowed.Object)
		if !ok {
			return narrowed
		}
		told := *narrowed
		told.Changed, told.ChangedCut = list, cut
		return &told
	}
}

// forms say how each stream's objects are cut and redacted now, so that what lies on disk by other rules is shaped
// again before it goes out (I9). They may be asked from any goroutine.
type forms struct {
	cfg   *config.Config
	key   transform.Key
	known func() map[formKey]*shape.Today // by the names of the streams: one on disk may be of another version
}

// formKey is a stream's name, and the sink's where that has rules of its own.
type formKey struct{ stream, sink string }

func newForms(c *cluster.Cluster, cfg *config.Config, key transform.Key) *forms {
	f := &forms{cfg: cfg, key: key}
	f.known = selection.Derived(&c.Current, f.all)
	return f
}

// today is nil where no rules of today are known: what is not configured has none. For a sink its own rules are in it;
// "" is what all sinks share.
func (f *forms) today(stream *change.Stream, sinkName string) *shape.Today {
	own := f.own(sinkName)
	if len(own) == 0 {
		sinkName = ""
	}
	if today, found := f.known()[formKey{stream.String(), sinkName}]; found {
		return today
	}
	return f.make(&selection.Selected{Stream: *stream, Names: selection.PossibleNames(stream.Resource)}, own)
}

// all are those of the choice's streams.
func (f *forms) all(choice *selection.Choice) map[formKey]*shape.Today {
	all := map[formKey]*shape.Today{}
	for i := range choice.Streams {
		s := &choice.Streams[i]
		all[formKey{stream: s.Stream.String()}] = f.make(s, nil)
		for _, to := range f.cfg.Sinks {
			if own := f.own(to.Name); len(own) > 0 {
				all[formKey{s.Stream.String(), to.Name}] = f.make(s, own)
			}
		}
	}
	return all
}

// own are the rules that the sink has beside its resources', none or one set.
func (f *forms) own(sinkName string) []transform.Rules {
	for i := range f.cfg.Sinks {
		if rules := selection.SinkRules(&f.cfg.Sinks[i], f.cfg.Resources); f.cfg.Sinks[i].Name == sinkName && !rules.Empty() {
			return []transform.Rules{rules}
		}
	}
	return nil
}

func (f *forms) make(s *selection.Selected, own []transform.Rules) *shape.Today {
	known := *s
	for _, name := range s.Names {
		known.Configure(f.cfg.Resources, name)
	}
	if known.Configured == nil {
		return nil
	}
	today, err := selection.TodayOf(&known, f.key, own...)
	if err == nil {
		err = selection.AddInvolved(today, &known, f.cfg)
	}
	if err != nil { // no start gets so far
		return nil
	}
	return today
}

// ofSink is the form of what the sink is given now, and for "" of what is shaped before any sink's own rules.
func (f *forms) ofSink(sinkName string) func(*change.Stream) string {
	return func(stream *change.Stream) string {
		if today := f.today(stream, sinkName); today != nil {
			return today.Form
		}
		return ""
	}
}

// reshapeFor brings what was kept for a sink into the form that it is given now. "" is a record that waits for any.
func (f *forms) reshapeFor(sinkName string, rec *change.Record) error {
	today := f.today(rec.Stream, sinkName)
	if today == nil && sinkName == "" { // it is not configured any more, and treated as if it were by its name alone
		today = f.make(&selection.Selected{Stream: *rec.Stream, Configured: &config.Resource{}}, nil)
	}
	if today == nil {
		return errors.New("the current rules cannot be applied to it")
	}
	return today.Reshape(rec, rec.Form)
}

// reshapeLetter makes the letter's object and message be what they would be today. Where that is not possible nothing
// is left of them. A message that cannot be encoded now is encoded when the letter is sent again.
func (f *forms) reshapeLetter(l *deadletter.Letter, clusterUID string, encode func(*change.Record) ([]sink.Message, error)) {
	rec := l.Record(clusterUID)
	form := f.ofSink(l.Sink)(rec.Stream)
	if err := f.reshapeFor(l.Sink, rec); err != nil {
		l.Value, l.Object, l.Before, l.Form, l.Actor, l.Involved, l.Changed = nil, nil, nil, form, nil, nil, nil
		l.Error = fmt.Sprintf("%s (its content was cut and redacted by rules other than today's, and is withheld: %v)", l.Error, err)
		return
	}
	l.Value, l.Object, l.Before, l.Form = nil, rec.Object, rec.Before, form
	l.Actor, l.Involved, l.Changed, l.ChangedCut = rec.Actor, rec.Involved, rec.Changed, rec.ChangedCut
	if messages, err := encode(rec); err == nil {
		l.Value = messages[0].Value
	}
}
