package election

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// marked is the annotation that says what the members of a Lease share.
const marked = "kubecdc/sinks"

// leases reads and writes the Lease.
type leases interface {
	get(ctx context.Context) (*coordinationv1.Lease, error)
	create(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	update(ctx context.Context, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

var _ resourcelock.Interface = (*lock)(nil)

// lock is the Lease as client-go's elector uses it. One goroutine uses it at a time.
type lock struct {
	leases  leases
	place   Place
	self    string
	mark    string
	timeout time.Duration // of one request
	between time.Duration // two writes of a holder, at least
	told    watcher
	lease   *coordinationv1.Lease // as the API server had it last
	wrote   atomic.Int64          // when it was written last, in nanoseconds
}

// watcher is told what the lock meets, in the goroutine of the elector.
type watcher interface {
	// saw is told of each answer, and says why the Lease is not ours to have.
	saw(lease *coordinationv1.Lease) error
	failed(err error)
	// question is what a holder asks the others, "" is nothing.
	question() string
}

// Get is resourcelock.Interface's.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	err := l.ask(ctx, l.leases.get)
	if err != nil {
		return nil, nil, err
	}
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&l.lease.Spec)
	raw, err := json.Marshal(record)
	return record, raw, err
}

// Create is resourcelock.Interface's.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	lease := &coordinationv1.Lease{
		TypeMeta:   metav1.TypeMeta{APIVersion: coordinationv1.SchemeGroupVersion.String(), Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: l.place.Namespace, Name: l.place.Name, Annotations: map[string]string{marked: l.mark}},
		Spec:       resourcelock.LeaderElectionRecordToLeaseSpec(&record),
	}
	return l.write(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) { return l.leases.create(ctx, lease) })
}

// errNotRead says that a Lease is to be written that was not read.
var errNotRead = errors.New("the Lease was not read yet")

// Update is resourcelock.Interface's. A holder that has written just now has renewed it.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.lease == nil {
		return errNotRead
	}
	if holderOf(l.lease) == l.self && record.HolderIdentity == l.self && time.Since(time.Unix(0, l.wrote.Load())) < l.between {
		return nil
	}
	lease := l.lease.DeepCopy()
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	lease.Annotations = maps.Clone(lease.Annotations)
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	question := ""
	if record.HolderIdentity != "" {
		lease.Annotations[marked], question = l.mark, l.told.question()
	}
	put(lease.Annotations, question)
	return l.write(ctx, func(ctx context.Context) (*coordinationv1.Lease, error) { return l.leases.update(ctx, lease) })
}

// write writes the Lease, and notes when.
func (l *lock) write(ctx context.Context, how func(context.Context) (*coordinationv1.Lease, error)) error {
	began := time.Now()
	err := l.ask(ctx, how)
	if err == nil {
		l.wrote.Store(began.UnixNano())
	}
	return err
}

// ask does one request, and tells what came of it.
func (l *lock) ask(ctx context.Context, how func(context.Context) (*coordinationv1.Lease, error)) error {
	bounded, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	lease, err := how(bounded)
	if err != nil {
		if ctx.Err() == nil {
			l.told.failed(err)
		}
		return err
	}
	l.lease = lease
	return l.told.saw(lease)
}

// demand makes the next renewal one that the API server answers.
func (l *lock) demand() { l.wrote.Store(0) }

// release gives the Lease back, if it is ours.
func (l *lock) release(ctx context.Context) error {
	record, _, err := l.Get(ctx)
	if err != nil || record.HolderIdentity != l.self {
		return err
	}
	now := metav1.Now()
	return l.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	})
}

// RecordEvent is resourcelock.Interface's.
func (l *lock) RecordEvent(string) {}

// Identity is resourcelock.Interface's.
func (l *lock) Identity() string { return l.self }

// Describe is resourcelock.Interface's.
func (l *lock) Describe() string { return l.place.String() }

// holderOf is who holds the Lease, "" for nobody.
func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// judged is a *ForeignError if somebody may hold the Lease whose mark the judge refuses.
func judged(lease *coordinationv1.Lease, place Place, judge func(theirs string) error) error {
	holder := holderOf(lease)
	if holder == "" || !isFresh(lease, time.Now()) {
		return nil
	}
	if err := judge(lease.Annotations[marked]); err != nil {
		return &ForeignError{Place: place, Holder: holder, Err: err}
	}
	return nil
}

// isFresh says whether the Lease's holder may be alive. Clocks of hosts differ.
func isFresh(lease *coordinationv1.Lease, now time.Time) bool {
	const skew = time.Minute
	if lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return true
	}
	return now.Sub(lease.Spec.RenewTime.Time) < time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second+skew
}
