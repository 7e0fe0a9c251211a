package election

import (
	"context"
	"crypto/rand"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

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
