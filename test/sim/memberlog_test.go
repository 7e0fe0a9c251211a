package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/ha/statelog"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// memberLog is the log of the state, as one member reads and writes it. nil is none.
type memberLog struct {
	life    *life
	queue   *statelog.Queue
	place   statelog.Place
	of      statelog.Identity
	as      statelog.Claimant
	claimed *statelog.Claimed
	log     *statelog.Log // nil before the state is open
}

// stateLog is the member's, nil where the exporter is alone.
func (l *life) stateLog() *memberLog {
	if l.world.task == nil {
		return nil
	}
	writer := &stateWriter{stateBroker: l.world.task.broker, life: l}
	return &memberLog{
		life: l, queue: statelog.NewQueue(), of: statelog.Identity{Cluster: "sim"}, as: statelog.Claimant{Member: fmt.Sprint("member ", l.member)},
		place: statelog.Place{
			Name: "the log", Sink: writer,
			Reader: func() (sink.Reader, error) { return &stateReader{from: writer}, nil },
			Of:     func(slot string) (string, []byte) { return slot, nil },
		},
	}
}

// takeOver makes the member the log's writer, and its disk the state that it goes on from, as package app does: its own
// where nobody else has led since, and otherwise the log's.
func (m *memberLog) takeOver(ctx context.Context) error {
	if m == nil {
		return nil
	}
	err := m.patiently(ctx, func() (err error) {
		m.claimed, err = statelog.Claim(ctx, m.place, statelog.Bid{Of: m.of, As: m.as})
		return err
	})
	if err != nil {
		return err
	}
	own, err := m.isOwn(ctx)
	if err != nil || own {
		return err
	}
	found, err := m.claimed.Found()
	if errors.Is(err, statelog.ErrNothing) {
		return nil // the disk counts
	}
	if err != nil {
		return err
	}
	return m.patiently(ctx, func() error { return m.restore(ctx, found) })
}

// patiently tries again while the broker does not answer.
func (m *memberLog) patiently(ctx context.Context, try func() error) error {
	err := try()
	for ; errors.Is(err, errNoAnswer); err = try() {
		if err := m.life.linger(ctx, 500, 1000); err != nil {
			return err
		}
	}
	return err
}

// isOwn says whether the member's disk has the newest state.
func (m *memberLog) isOwn(ctx context.Context) (bool, error) {
	led, found, err := checkpoint.LedAt(ctx, "state", m.life.options(nil))
	if err != nil || !found {
		return false, err
	}
	return m.claimed.IsNewest(led), nil
}

// restore makes an empty disk the state that the log has.
func (m *memberLog) restore(ctx context.Context, found *statelog.Found) error {
	m.life.replaceDisk()
	target, err := checkpoint.Restore(ctx, "state", m.life.options(nil))
	if err != nil {
		return err
	}
	place, err := found.Into(ctx, target.Apply)
	if err == nil {
		err = target.Finish(place, func(string, []byte) error { return nil })
	}
	if err == nil {
		m.life.note("log", fmt.Sprintf("the state is restored, of %s", found.Saved.Sub(m.life.world.began)))
	}
	return errors.Join(err, target.Close())
}

// journal is what the state is opened with.
func (m *memberLog) journal() checkpoint.Journal {
	if m == nil {
		return nil
	}
	return m.queue
}

// run writes the log until the returned stop. It is cut so finely that most units are several messages, and that there
// is a segment every now and then.
func (m *memberLog) run(store *checkpoint.Store) (stop func(), err error) {
	if m == nil {
		return func() {}, nil
	}
	m.log, err = statelog.New(statelog.Options{
		Place: m.place, Of: m.of, As: m.as, Claimed: m.claimed, Store: store, Queue: m.queue, Files: noFiles, Written: m.written, Failed: m.failed,
		Grain: statelog.Grain{Part: 100, Page: 300, Since: 20_000},
	})
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(m.life.ctx))
	go m.log.Run(running)
	return func() {
		bounded, release := context.WithTimeout(running, 5*time.Second)
		defer release()
		m.log.Finish(bounded)
		cancel()
		m.log.Wait()
	}, nil
}

// proof is how the member proves that it still leads, nil where it need not.
func (m *memberLog) proof() func(context.Context) error {
	if m == nil || m.life.world.script.Without == withoutProof {
		return nil
	}
	return m.log.Prove
}

func noFiles() ([]string, error) { return nil, nil }

// written notes what the log has.
func (m *memberLog) written() {
	behind := m.queue.IsBehind()
	m.life.world.mu.Lock()
	defer m.life.world.mu.Unlock()
	m.life.noteComplete(!behind)
}

// failed ends the term where another member writes the log.
func (m *memberLog) failed(err error) {
	m.life.note("fail", "log: "+err.Error())
	if errors.Is(err, errFenced) || sink.IsFenced(err) {
		m.life.shutOut()
	}
}
