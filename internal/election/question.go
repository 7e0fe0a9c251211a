package election

import (
	"context"
	"crypto/rand"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The annotations with which a holder that reaches no broker asks whether another member does: an id, and the same id
// with the name of the one that does. They are hints, as the Lease is.
const (
	asks    = "kubecdc/who-can-write"
	answers = "kubecdc/can-write"
)

// put writes the holder's question into the annotations of its Lease, "" is none, and keeps an answer to that alone.
func put(annotations map[string]string, question string) {
	if id, _, _ := strings.Cut(annotations[answers], " "); id != question || question == "" {
		delete(annotations, answers)
	}
	if delete(annotations, asks); question != "" {
		annotations[asks] = question
	}
}

// talk is what the members ask each other.
type talk struct {
	ours   string // the question of this member, which holds the Lease; "" is none
	by     string // who answered it; "" is nobody yet
	theirs string // the question of the holder, which nobody has answered; "" is none
}

// read takes what the Lease says. isOurs says whether this member holds it.
func (t *talk) read(annotations map[string]string, isOurs bool, self string) {
	id, by, _ := strings.Cut(annotations[answers], " ")
	switch question := annotations[asks]; {
	case isOurs:
		t.theirs = ""
		if t.ours != "" && id == t.ours && by != self {
			t.by = by
		}
	case id == question:
		t.theirs = ""
	default:
		t.theirs = question
	}
}

// Ask asks the other members, by the Lease that this one holds, which of them reaches the brokers. It returns the first
// that says so, or ctx's error where nobody does.
func (m *Member) Ask(ctx context.Context) (by string, err error) {
	m.mu.Lock()
	m.talk.ours, m.talk.by = rand.Text(), ""
	m.mu.Unlock()
	m.lock.demand()
	defer func() {
		m.mu.Lock()
		m.talk.ours = ""
		m.mu.Unlock()
		m.lock.demand()
	}()
	for {
		m.mu.Lock()
		changed, by := m.changed, m.talk.by
		m.mu.Unlock()
		if by != "" {
			return by, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// Question is what the holder asks, and nobody has answered; "" is nothing.
func (m *Member) Question() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.talk.theirs
}

// Answer tells the holder that this member reaches the brokers. It does nothing where the question is not open any
// more.
func (m *Member) Answer(ctx context.Context, question string) error {
	ctx, cancel := context.WithTimeout(ctx, m.options.Duration)
	defer cancel()
	for {
		lease, err := m.options.leases.get(ctx)
		if err != nil || holderOf(lease) == m.options.Self || lease.Annotations[asks] != question {
			return err
		}
		if id, _, _ := strings.Cut(lease.Annotations[answers], " "); id == question {
			return nil
		}
		lease.Annotations = maps.Clone(lease.Annotations)
		lease.Annotations[answers] = question + " " + m.options.Self
		if _, err = m.options.leases.update(ctx, lease); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// question is watcher's.
func (m *Member) question() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.talk.ours
}
