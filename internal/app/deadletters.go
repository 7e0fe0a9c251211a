package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/requests"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/config"
	"github.com/kubecdc/kubecdc/internal/control"
	"github.com/kubecdc/kubecdc/internal/deadletter"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// deadLetters are the dead letters of this run's sinks.
type deadLetters struct {
	names      []string // of the sinks, in the configuration's order
	dirs       map[string]*deadletter.Dir
	clusterUID string
	forms      *forms
	replays    chan pipeline.Replay
	busy       sync.Mutex // held while letters are sent again
}

func deadLettersOf(cfg *config.Config, c *cluster.Cluster, f *forms, log *task.StateLog) *deadLetters {
	all := &deadLetters{dirs: map[string]*deadletter.Dir{}, clusterUID: c.UID, forms: f, replays: make(chan pipeline.Replay)}
	for _, s := range cfg.Sinks {
		dir := s.DeadLetter.Dir
		if dir == "" {
			dir = deadletter.DirOf(cfg.State.Dir)
		}
		all.names = append(all.names, s.Name)
		all.dirs[s.Name] = deadletter.New(deadletter.Options{
			Dir: filepath.Join(dir, s.Name), Sink: s.Name, Cluster: c.Name, ClusterUID: c.UID, Form: f.ofSink(s.Name),
			Bytes: int64(s.DeadLetter.Bytes), Changed: log.Changed(s.Name),
		})
	}
	return all
}

// keepFor gives each sink its letters.
func (l *deadLetters) keepFor(sinks []listener.Sink) {
	for i := range sinks {
		sinks[i].DeadLetters = l.dirs[sinks[i].Name]
	}
}

func (l *deadLetters) count(sinkName string) (int, error) { return l.dirs[sinkName].Count() }

// replay sends letters again, one after the other, so that one at most is in memory for it.
func (l *deadLetters) replay(ctx context.Context, asked control.ReplayRequest) (*control.Replayed, error) {
	if !l.busy.TryLock() {
		return nil, errors.New("another replay of dead letters is running: wait until it ends, then list what is left")
	}
	defer l.busy.Unlock()
	names, err := control.ResolveSink(l.names, asked.Sink)
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
	answer := make(chan pipeline.ReplayEnd, 1)
	opening, cancel := context.WithTimeout(ctx, requests.AskTime)
	defer cancel()
	select {
	case l.replays <- pipeline.Replay{Letter: letter.ID, Record: rec, Force: force, Answer: answer}:
	case <-opening.Done():
		return "", control.ErrNotStreaming
	}
	select {
	case end := <-answer:
		return end.LeftOut, end.Err
	case <-ctx.Done():
		return "", errors.New("it waits in the sink's queue, and is sent when its turn comes")
	}
}

// reshapeLetters brings the dead letters on disk into today's form, so that nobody who looks at them sees more than
// consumers do. What cannot be mended is told, and shaped or kept when it is sent again.
func (a *assembly) reshapeLetters(ctx context.Context, all *deadLetters, sinks []listener.Sink, f *forms) {
	for i := range sinks {
		s := &sinks[i]
		due := func(head *deadletter.Letter) bool { // what is not configured goes nowhere, and stays
			rec := head.Record(a.cluster.UID)
			today := f.today(rec.Stream, s.Name)
			return rec.Op.OfObject() && today != nil && head.Form != today.Form
		}
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
