package app

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/deadletter"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/transform"
)

// forms say how each stream's objects are cut and redacted now, so that what lies on disk by other rules is shaped
// again before it goes out (I9). They may be asked from any goroutine.
type forms struct {
	cluster *cluster.Cluster
	cfg     *config.Config
	key     transform.Key
	known   atomic.Pointer[formsOf]
}

// formsOf are those of one choice, by the names of its streams: a stream on disk may be of another version.
type formsOf struct {
	choice *selection.Choice
	today  map[formKey]*shape.Today
}

// formKey is a stream's name, and the sink's where that has rules of its own.
type formKey struct{ stream, sink string }

func newForms(c *cluster.Cluster, cfg *config.Config, key transform.Key) *forms {
	return &forms{cluster: c, cfg: cfg, key: key}
}

// forms are those of this run. What goes to disk from now on names them.
func (a *assembly) forms() (*forms, error) {
	key, err := redactionKey(a.cfg, a.store, a.cluster.UID)
	if err != nil {
		return nil, err
	}
	f := newForms(a.cluster, a.cfg, key)
	a.store.SetForms(f.of)
	return f, nil
}

// today is nil where no rules of today are known: what is not configured has none. For a sink its own rules are in it;
// "" is what all sinks share.
func (f *forms) today(stream *change.Stream, sinkName string) *shape.Today {
	now, known := f.cluster.Chosen.Load(), f.known.Load()
	if known == nil || known.choice != now {
		known = f.all(now)
		f.known.Store(known)
	}
	own := f.own(sinkName)
	if len(own) == 0 {
		sinkName = ""
	}
	if today, found := known.today[formKey{stream.String(), sinkName}]; found {
		return today
	}
	return f.make(&selection.Selected{Stream: *stream, Names: selection.PossibleNames(stream.Resource)}, own)
}

// all are those of the choice's streams.
func (f *forms) all(choice *selection.Choice) *formsOf {
	all := &formsOf{choice, map[formKey]*shape.Today{}}
	for i := range choice.Streams {
		s := &choice.Streams[i]
		all.today[formKey{stream: s.Stream.String()}] = f.make(s, nil)
		for _, to := range f.cfg.Sinks {
			if own := f.own(to.Name); len(own) > 0 {
				all.today[formKey{s.Stream.String(), to.Name}] = f.make(s, own)
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

// of is the form of what is shaped now, before any sink's own rules.
func (f *forms) of(stream *change.Stream) string { return f.ofSink("")(stream) }

// ofSink is the form of what the sink is given now.
func (f *forms) ofSink(sinkName string) func(*change.Stream) string {
	return func(stream *change.Stream) string {
		if today := f.today(stream, sinkName); today != nil {
			return today.Form
		}
		return ""
	}
}

var errNoRules = errors.New("the current rules cannot be applied to it")

// reshape brings a record from disk into today's form, in which it waits for any sink.
func (f *forms) reshape(rec *change.Record) error { return f.reshapeFor("", rec) }

// reshapeFor brings what was kept for a sink into the form that it is given now.
func (f *forms) reshapeFor(sinkName string, rec *change.Record) error {
	today := f.today(rec.Stream, sinkName)
	if today == nil {
		return errNoRules
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

// redactionKey has the configured secret, or the state's own.
func redactionKey(cfg *config.Config, store *checkpoint.Store, clusterUID string) (transform.Key, error) {
	key := transform.Key{Secret: []byte(cfg.RedactKey.Reveal()), Comparable: cfg.ComparableHashes(), Cluster: clusterUID}
	if len(key.Secret) > 0 {
		return key, nil
	}
	var err error
	key.Secret, err = store.RedactionKey()
	return key, err
}
