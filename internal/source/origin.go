package source

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// origin is what one stream knows of the API server: whose history it speaks of, where it stands, and what its answers
// are worth.
type origin struct {
	collection collection
	trust      trust
	versions   versions
	unsorted   atomic.Bool // its lists are not in the inventory's order

	version string // where it stood when it was asked last
	asked   time.Time
	watched string // where it stood when the last watch began that worked
}

// cluster is the uid of the cluster that the server serves, as of a question after since.
func (o *origin) cluster(ctx context.Context, since time.Time) (string, error) {
	uid, err := o.collection.client.clusterUID(ctx, since)
	if err != nil {
		return "", fmt.Errorf("ask the server which cluster it serves: %w", err)
	}
	return uid, nil
}

// refutes asks for the one object that is known best at exactly the position. An etcd that was restored and has
// overtaken the position since has it at an older version, or at one that was never delivered. It never says so of the
// same history; where the server no longer has the version, or the object was not touched since the restored one, it
// cannot tell, and the next resync finds what differs.
func (o *origin) refutes(ctx context.Context, position string, p proof) bool {
	if p.version == "" {
		return false
	}
	object, found, version, err := o.collection.look(ctx, p.key, position)
	if err != nil {
		return false // whatever follows fails, too, or is gone
	}
	o.trust.suspect.Store(false)
	return version == position && !p.holds(&object, found) // a server that does not list at exactly the version proves nothing
}

// present is where the server stands, by a list of one object.
func (o *origin) present(ctx context.Context) (string, error) {
	if fresh := (freshness{o.trust.asked(), o.collection.client.maxAge}); fresh.has(o.asked) {
		return o.version, nil
	}
	return o.ask(ctx, o.collection)
}

// watchable is where the server stands, once it serves watches from there. It builds the cache that does so when it is
// first asked for a custom resource, and a watch from an earlier version is refused: a first start would begin with a
// gap. It says that it is at it (429, KEP-4568) where the list has a field selector; without one etcd answers.
func (o *origin) watchable(ctx context.Context) (version string, err error) {
	cached := o.collection
	cached.selection = cached.selection.cached()
	err = backoff.Retry(func() error {
		if version, err = o.ask(ctx, cached); err == nil || apierrors.IsTooManyRequests(err) {
			return err
		}
		return backoff.Permanent(err)
	}, backoff.WithContext(cacheBackoff(), ctx))
	if apierrors.IsBadRequest(err) { // an aggregated API server that has no such selector
		return o.present(ctx)
	}
	return version, err
}

// cacheBackoff is for a server that builds a cache: some 100 ms. Where it takes much longer, others have their turn.
func cacheBackoff() backoff.BackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxElapsedTime(2*time.Second))
}

// ask asks where the server stands, and remembers it.
func (o *origin) ask(ctx context.Context, of collection) (string, error) {
	asked := time.Now()
	version, err := o.askVersion(ctx, of)
	if version != "" {
		o.version, o.asked = version, asked
	}
	return version, err
}

// askVersion asks the server, whatever it said before.
func (o *origin) askVersion(ctx context.Context, of collection) (string, error) {
	var first *frame.Object
	meta, err := of.list(ctx, page{limit: 1}, func(object frame.Object) error { first = &object; return nil })
	switch {
	case err != nil:
		return "", fmt.Errorf("ask the server for the version of %s: %w", o.collection.stream, err)
	case !change.IsVersion(meta.ResourceVersion):
		return "", o.versions.unordered("its list has the resourceVersion %.40q", meta.ResourceVersion)
	case first != nil:
		err = o.versions.check(first, meta.ResourceVersion)
	}
	return meta.ResourceVersion, err
}

// trust is what a server's answers are worth after the end of a watch, and after a failure: another one may answer
// from then on. It is for any goroutine. The zero value trusts.
type trust struct {
	suspect atomic.Bool               // something failed since the proof was asked for
	since   atomic.Pointer[time.Time] // answers to earlier questions say nothing; nil before the first
}

// doubt notes that something failed: what the server said before may be that of another one.
func (t *trust) doubt() {
	t.suspect.Store(true)
	t.forgetAnswers()
}

// forgetAnswers makes the stream ask the server anew.
func (t *trust) forgetAnswers() {
	now := time.Now()
	t.since.Store(&now)
}

// asked is since when questions to the server must have been asked to say something about the next watch: the end of
// the last one, and of the last failure.
func (t *trust) asked() time.Time {
	if since := t.since.Load(); since != nil {
		return *since
	}
	return time.Time{}
}

// proof is the newest record of the stream that went in line: at the position the server has the object so, and in no
// other state, for as long as it is the history that the position was reached in. It is pure. The zero value proves
// nothing.
type proof struct {
	key          change.Key
	uid, version string
	deleted      bool
}

// proofOf is the proof that a record of the watch gives.
func proofOf(rec *change.Record) proof {
	return proof{key: rec.Key, uid: rec.UID, version: rec.ResourceVersion, deleted: rec.Op == change.Deleted}
}

// holds says whether the server has the object as it was told, where found is whether it has any.
func (p proof) holds(object *frame.Object, found bool) bool {
	if p.deleted || !found {
		return p.deleted && !found
	}
	return object.UID == p.uid && object.ResourceVersion == p.version
}
