package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// longestWatch bounds the time limit of a watch, which is half of it at least, by chance: so not all end together.
const longestWatch = 10 * time.Minute

// run opens one watch after the other until ctx ends, or no sink is left. Behind one that has failed, or that was very
// short and brought nothing, there is a pause.
func (i *Informer) run(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	i.turns.take()
	i.end = end
	i.turns.give()
	w := &watching{Informer: i}
	pauses, since := watchBackoff(), time.Now()
	for ctx.Err() == nil {
		if w.next(ctx) {
			continue
		}
		if time.Since(since) > 2*time.Minute {
			pauses, since = watchBackoff(), time.Now()
		}
		select {
		case <-time.After(pauses.Step()):
		case <-ctx.Done():
		}
	}
	i.comparer.over.Wait()
}

// watchBackoff is the pauses between watches that fail: from 0.1 s up to 30 s. The jitter makes each up to twice as
// long.
func watchBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Cap: 15 * time.Second, Steps: 10, Factor: 2, Jitter: 1}
}

// watching is one watch after the other.
type watching struct {
	*Informer
	endings  endings
	refusals refusals
}

// next reads one watch to its end, and says whether another one may be opened at once. To open it takes a deep stack
// for a moment, and this goroutine, which then waits for as long as the watch lives, would keep it, 8 KiB a stream: so
// another one does.
func (w *watching) next(ctx context.Context) (atOnce bool) {
	began := time.Now()
	var d *feed
	opened := make(chan error)
	go func() {
		opened <- w.beyondOutage(ctx, func() (err error) {
			d, err = w.watch(ctx)
			return err
		})
	}()
	if err := <-opened; err != nil {
		if errors.Is(err, errNobody) {
			w.end()
		}
		return false
	}
	defer d.body.Close()
	defer d.stop()
	err := d.read()
	d.finish(err, time.Since(d.began))
	ordinary := err == io.EOF || err == io.ErrUnexpectedEOF || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err)
	return ordinary && (d.works || time.Since(began) >= time.Second)
}

// watch opens a watch at the lowest position of the sinks.
func (w *watching) watch(ctx context.Context) (*feed, error) {
	if refused := w.shared.isRefused(); refused != nil {
		w.fail(ctx, refused)
		return nil, refused
	}
	if err := w.believeOrAsk(ctx); err != nil {
		return nil, err
	}
	leave, err := w.Gate.enter(ctx, w.precedence())
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := w.moveQuiet(ctx); err != nil {
		return nil, err
	}
	from, err := w.begin(ctx)
	if err != nil {
		if !errors.Is(err, errNobody) {
			w.turns.take()
			err = w.refuse(ctx, err)
			w.turns.give()
			w.fail(ctx, err)
		}
		return nil, err
	}
	return w.open(ctx, from)
}

// precedence is the stream's.
func (w *watching) precedence() precedence {
	if isBuiltIn(w.stream.Resource) {
		return builtInFirst
	}
	w.turns.take()
	defer w.turns.give()
	for _, seat := range w.seats {
		if at := seat.Known(&w.way).From; at.Version != "" {
			return knownNext
		}
	}
	return othersLast
}

// believeOrAsk judges that the position is gone, where a server said so: the sinks that stand there are told of a gap,
// or the next watch is asked for at another server.
func (w *watching) believeOrAsk(ctx context.Context) error {
	refused := w.refusals
	if refused.times == 0 {
		return nil
	}
	if !refused.convinces(w.Client.servers(ctx)) {
		select {
		case <-time.After(refusalPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		w.Client.redial(ctx, refused.last)
		return nil
	}
	w.refusals = refusals{}
	w.Observer.Failed(*w.stream, refused.newest)
	w.turns.take()
	w.forgot = change.VersionAbove(w.from)
	w.turns.give()
	if !w.endings.isFirstGone() {
		return refused.newest // for the pause
	}
	return nil
}

// open opens a watch from the version. What is read beside it ends with run.
func (w *watching) open(run context.Context, from string) (*feed, error) {
	ctx, stop := context.WithCancel(run)
	w.turns.take()
	w.seen.settle()
	w.turns.give()
	seconds := int64((longestWatch / 2).Seconds() * (1 + rand.Float64()))
	body, err := w.origin.collection.watch(ctx, from, w.silence.limit(seconds))
	if err != nil {
		stop()
		if !w.noteGone(err) {
			w.fail(ctx, err)
		}
		return nil, err
	}
	w.Observer.Watching(*w.stream, from)
	cut := w.origin.collection.options()
	cut.Lend = w.Shape != nil
	d := &feed{
		ctx: run, watching: w, body: body, frames: frame.NewReader(body, cut), number: w.turns.opened(), began: time.Now(),
		watch: ctx, stop: stop, stood: w.origin.version,
	}
	w.comparer.wake(run)
	return d, nil
}

// noteGone notes that the position is unavailable, where the error says so: before the next watch it is judged.
func (w *watching) noteGone(err error) bool {
	if !isGone(err) {
		return false
	}
	w.origin.trust.doubt()
	w.remnant.gone(err)
	w.refusals.note(err, time.Now())
	return true
}

// beyondOutage does what needs the server. Where nobody answers it waits until somebody does, and does it once more: a
// server that answers that question and not this one is left to the pauses of run.
func (w *watching) beyondOutage(ctx context.Context, do func() error) error {
	err := do()
	if !IsUnreachable(err) || ctx.Err() != nil {
		return err
	}
	for {
		err := w.Client.awaitAnswer(ctx)
		if err == nil {
			return do()
		}
		w.fail(ctx, err)
		if ctx.Err() != nil {
			return err
		}
	}
}

// fail tells the observer, unless the failure is only our own stop.
func (w *watching) fail(ctx context.Context, err error) {
	w.origin.trust.suspect.Store(true)
	if !apierrors.IsTooManyRequests(err) { // as a server says that begins to serve a resource
		w.origin.trust.forgetAnswers()
	}
	if apierrors.IsNotFound(err) {
		w.Client.redial(ctx, time.Time{}) // another server may serve it
	}
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		w.Observer.Failed(*w.stream, err)
	}
}

// feed is a watch that is open.
type feed struct {
	*watching
	ctx    context.Context // of the informer
	watch  context.Context // it ends when the watch is stopped
	stop   context.CancelFunc
	body   io.ReadCloser
	frames *frame.Reader

	number int       // of the watch
	began  time.Time // when it was open
	stood  string    // the version at which the server stood then
	count  int       // frames
	works  bool      // one was taken
}

// read gives the records of the watch to the sinks until it ends, and returns why it did. One that was stopped ends as
// it should. So does one whose position is gone: what follows of that is found out before the next one.
func (d *feed) read() error {
	for {
		f, err := d.frames.Next()
		if err != nil {
			return err
		}
		first := d.take(&f)
		switch {
		case d.watch.Err() != nil:
			return io.EOF
		case f.Type == frame.Error:
			return d.failed(f.Status)
		case first:
			d.works, d.refusals = true, refusals{} // the position has a server
		}
	}
}

// failed is the error that the server sends.
func (d *feed) failed(text []byte) error {
	status := new(metav1.Status)
	if err := json.Unmarshal(text, status); err != nil {
		return fmt.Errorf("decode the server's error %.200q: %w", text, err)
	}
	failure := apierrors.FromObject(status)
	if d.noteGone(failure) {
		d.works = true
		return io.EOF
	}
	return failure
}

// finish notes how the watch ended, and how long it took until then. For its turn it may wait long. No position can be
// gone on with where what cannot be read stands at it for the second time, or where the server has none of it.
func (d *feed) finish(err error, took time.Duration) {
	d.turns.take()
	defer d.turns.give()
	d.turns.closed(d.number)
	var said apierrors.APIStatus
	switch {
	case d.watch.Err() != nil, err == io.EOF:
	case errors.As(err, &said):
		d.Observer.Failed(*d.stream, err)
	default:
		d.origin.trust.doubt()
		d.stale = d.stale || d.endings.broke(d.brought, frame.IsUnreadable(err))
		d.Observer.Failed(*d.stream, fmt.Errorf("read the watch of %s: %w", d.stream, err))
	}
	d.origin.trust.forgetAnswers()
	if d.remnant.ended(took); took >= time.Second {
		d.refusals = refusals{}
		d.origin.watched = d.stood
	}
	orderly := err == io.EOF && d.watch.Err() == nil
	d.stale = d.endings.ended(d.count, orderly, took) || d.stale
	d.silence.note(d.count == 0 && orderly, took, d.stood)
}

// take gives the frame's record to the sinks, and says whether it is the watch's first. What comes after a record that
// could not be judged is left out: the watch is being ended, and the positions stay where the next one continues.
func (d *feed) take(f *frame.Frame) (first bool) {
	d.turns.take()
	defer d.turns.give()
	d.count++
	if f.Type == frame.Error || d.watch.Err() != nil {
		return d.count == 1
	}
	if err := d.push(f); err != nil && d.ctx.Err() == nil {
		err = d.refuse(d.ctx, err)
		d.Observer.Failed(*d.stream, err)
		d.stale = true
		d.stop()
	}
	if len(d.seats) == 0 {
		d.end()
	} else {
		d.tryJoin()
	}
	return d.count == 1
}

func (d *feed) push(f *frame.Frame) error {
	defer d.turns.signal()
	version := f.Object.ResourceVersion
	if f.Type == frame.Bookmark {
		d.silence.bookmarked = true
		if !change.IsVersion(version) {
			return d.origin.versions.unordered("a bookmark has the resourceVersion %.40q", version)
		}
		d.brings(version)
		d.bookmark(strings.Clone(version))
		return nil
	}
	if err := d.origin.versions.check(&f.Object, ""); err != nil {
		return err
	}
	d.brings(version)
	rec := d.record(opOf(f.Type), &f.Object)
	again := version == d.brought && d.seen.has(&rec)
	if err := d.seen.add(&rec, d.number); err != nil {
		return d.origin.versions.unordered("%s at %.40q: %v", rec.Key, rec.ResourceVersion, err)
	}
	if d.Shape != nil {
		d.loan = loan{rec.Object, d.frames}
		defer func() {
			d.loan = loan{}
			d.seen.settle()
		}()
	}
	if !again {
		d.Observer.tellUnreadable(&rec, f.Object.Err)
	}
	rec.Beside = rec.Op == change.Updated && d.comparer.is
	err := d.tell(d.ctx, &rec, again)
	d.proof = proofOf(&rec)
	return err
}
