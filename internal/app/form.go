package app

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/deadletter"
	"github.com/kubecdc/kubecdc/internal/selection"
	"github.com/kubecdc/kubecdc/internal/shape"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// forms say how each stream's objects are cut and redacted now, so that what lies on disk by other rules is shaped
// again before it goes out (I9). They may be asked from any goroutine.
type forms struct {
	cluster *cluster
	cfg     *config.Config
	key     []byte
	known   atomic.Pointer[formsOf]
}

// formsOf are those of one choice, by the names of its streams: a stream on disk may be of another version.
type formsOf struct {
	choice *selection.Choice
	today  map[string]*shape.Today
}

func newForms(c *cluster, cfg *config.Config, key []byte) *forms {
	return &forms{cluster: c, cfg: cfg, key: key}
}

// forms are those of this run. What goes to disk from now on names them.
func (a *assembly) forms() (*forms, error) {
	key, err := redactionKey(a.cfg, a.store)
	if err != nil {
		return nil, err
	}
	f := newForms(a.cluster, a.cfg, key)
	a.store.SetForms(f.of)
	return f, nil
}

// today is nil where no rules of today are known: what is not configured has none.
func (f *forms) today(stream *change.Stream) *shape.Today {
	now, known := f.cluster.Chosen.Load(), f.known.Load()
	if known == nil || known.choice != now {
		known = &formsOf{now, map[string]*shape.Today{}}
		for i := range now.Streams {
			known.today[now.Streams[i].Stream.String()] = f.make(&now.Streams[i])
		}
		f.known.Store(known)
	}
	if today, found := known.today[stream.String()]; found {
		return today
	}
	return f.make(&selection.Selected{Stream: *stream, Names: selection.PossibleNames(stream.Resource)})
}

func (f *forms) make(s *selection.Selected) *shape.Today {
	known := *s
	for _, name := range s.Names {
		i := slices.IndexFunc(f.cfg.Resources, func(r config.Resource) bool { return r.Name == name })
		if i >= 0 && known.Configured == nil {
			known.Configured = &f.cfg.Resources[i]
		}
	}
	if known.Configured == nil {
		return nil
	}
	today, err := shape.NewToday(selection.WholeRules(&known), f.key)
	if err != nil { // no start gets so far
		return nil
	}
	return today
}

// of is the form of what is shaped now.
func (f *forms) of(stream *change.Stream) string {
	if today := f.today(stream); today != nil {
		return today.Form
	}
	return ""
}

var errNoRules = errors.New("the current rules cannot be applied to it")

// reshape brings a record from disk into today's form.
func (f *forms) reshape(rec *change.Record) error {
	today := f.today(rec.Stream)
	if today == nil {
		return errNoRules
	}
	return today.Reshape(rec, rec.Form)
}

// reshapeLetter makes the letter's object and message be what they would be today. Where that is not possible nothing
// is left of them. A message that cannot be encoded now is encoded when the letter is sent again.
func (f *forms) reshapeLetter(l *deadletter.Letter, clusterUID string, encode func(*change.Record) ([]sink.Message, error)) {
	rec := l.Record(clusterUID)
	if err := f.reshape(rec); err != nil {
		l.Value, l.Object, l.Before, l.Form = nil, nil, nil, f.of(rec.Stream)
		l.Error = fmt.Sprintf("%s (its content was cut and redacted by rules other than today's, and is withheld: %v)", l.Error, err)
		return
	}
	l.Value, l.Object, l.Before, l.Form = nil, rec.Object, rec.Before, f.of(rec.Stream)
	if messages, err := encode(rec); err == nil {
		l.Value = messages[0].Value
	}
}

// redactionKey is the configured key, or the state's own.
func redactionKey(cfg *config.Config, store *checkpoint.Store) ([]byte, error) {
	if cfg.RedactKey != "" {
		return []byte(cfg.RedactKey.Reveal()), nil
	}
	return store.RedactionKey()
}
