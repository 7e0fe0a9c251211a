package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// listerWatcher is a watcher as the Reflector knows it.
type listerWatcher struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells the Reflector to ask for lists, and so leaves them to us.
func (listerWatcher) IsWatchListSemanticsUnSupported() bool { return true }

// watcher is what the Reflector lists and watches through. It runs the reconciles that are due, and opens the watches.
type watcher struct {
	*Stream
	permit  permit
	lists   sync.WaitGroup // that the Reflector no longer waits for
	endings endings

	refusals refusals
}

// list runs the reconciles that are due and answers with an empty list at the stream's position: "nothing new". So the
// Reflector, which lists at each start and after many kinds of watch error, costs a list only where the position cannot
// be continued.
func (w *watcher) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	w.lists.Add(1)
	defer w.lists.Done()
	if options.ResourceVersion == "" { // the Reflector found its version unavailable
		w.schedule.add(change.Owed{Reason: change.Gone})
	}
	if err := w.beyondOutage(ctx, func() error { return w.reconcileDue(ctx) }); err != nil {
		w.permit.giveBack()
		return nil, err
	}
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: w.cursor.position.ResourceVersion}}, nil
}

// reconcileDue runs what is due, now that it is known whose versions the server speaks of.
func (w *watcher) reconcileDue(ctx context.Context) error {
	if refused := w.isRefused(); refused != nil {
		w.fail(ctx, refused)
		return refused
	}
	if w.schedule.isDue() {
		w.schedule.stopReader()
	}
	for w.schedule.isDue() {
		err := w.permit.enter(ctx, w.precedence())
		if err == nil {
			err = w.checkServer(ctx)
		}
		if err == nil {
			err = w.reconcile(ctx, w.schedule.begin()[0])
			w.schedule.done(err != nil)
		}
		if err != nil {
			err = w.refuse(ctx, err)
			w.fail(ctx, err)
			return err
		}
		if w.schedule.isDue() {
			w.permit.giveBack() // others have their turn
		}
	}
	return nil
}

// checkServer makes a reconcile due where the server has another history.
func (w *watcher) checkServer(ctx context.Context) error {
	p := w.proof
	if w.schedule.isDue() {
		p = proof{} // all is compared in any case
	}
	other, err := w.origin.hasOther(ctx, w.cursor.position.ResourceVersion, p)
	if other {
		w.schedule.add(change.Owed{Reason: change.Epoch})
	}
	return err
}

// errReconcileDue ends the Reflector's watch loop, so that it lists.
func errReconcileDue() error {
	return apierrors.NewResourceExpired("a reconcile is due before the next watch")
}

// watchAside is watch in a goroutine that ends with it. To open a watch takes a deep stack for a moment, and the
// Reflector's goroutine, which then waits for as long as the watch lives, would keep it: 8 KiB a stream.
func (w *watcher) watchAside(ctx context.Context, options metav1.ListOptions) (opened watch.Interface, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = w.beyondOutage(ctx, func() (err error) {
			opened, err = w.watch(ctx, options)
			return err
		})
	}()
	<-done
	return opened, err
}

// watch opens a watch at the stream's position. It runs what became due meanwhile: were it left to the next list, the
// Reflector's backoff, which is meant for failures, would hold up the stream for each.
func (w *watcher) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := w.believeOrAsk(ctx); err != nil {
		return nil, err
	}
	if err := w.permit.enter(ctx, w.precedence()); err != nil {
		return nil, err
	}
	defer w.permit.giveBack()
	if err := w.checkServer(ctx); err != nil && w.isRefused() == nil {
		w.fail(ctx, err)
		return nil, err
	}
	if err := w.reconcileDue(ctx); err != nil {
		return nil, err
	}
	if err := w.moveQuiet(ctx); err != nil {
		w.fail(ctx, err)
		return nil, err
	}
	return w.open(ctx, options.TimeoutSeconds)
}

// believeOrAsk judges that the position is gone, where a server said so. Either a reconcile is due then, or the next
// watch is asked for at another server. The error is that others are to have their turn first.
func (w *watcher) believeOrAsk(ctx context.Context) error {
	refused := w.refusals.newest.Load()
	if refused == nil {
		return nil
	}
	if !refused.convinces(w.Client.servers(ctx)) {
		w.permit.giveBack()
		select {
		case <-time.After(refusalPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		w.Client.redial(ctx, refused.last)
		return nil
	}
	w.refusals.newest.Store(nil)
	w.Observer.Failed(w.stream, refused.err)
	w.schedule.add(change.Owed{Reason: change.Gone})
	if !w.endings.isFirstGone() {
		return errReconcileDue()
	}
	return nil
}

// open opens a watch, unless a reconcile is due. What is read beside it ends with run.
func (w *watcher) open(run context.Context, seconds *int64) (watch.Interface, error) {
	ctx, stop := context.WithCancel(run)
	if !w.schedule.mayWatch(stop) {
		stop()
		return nil, errReconcileDue()
	}
	from := w.cursor.resume()
	body, err := w.origin.collection.watch(ctx, from, w.silence.limit(seconds))
	if err != nil {
		stop()
		if !w.noteGone(err) {
			w.fail(ctx, err)
		}
		return nil, err
	}
	w.Observer.Watching(w.stream, from)
	stood, cut := w.origin.version, w.origin.collection.options()
	cut.Lend = w.Shape != nil
	frames := frame.NewReader(body, cut)
	d := &decoder{ctx: run, stream: w.Stream, body: body, frames: frames, number: w.turns.opened(), began: time.Now()}
	w.schedule.letRead(run)
	d.ended = func(frames int, orderly bool, took time.Duration) {
		stop()
		w.watchEnded(frames, orderly, took, stood)
	}
	reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")
	observed := &observedDecoder{decoder: d, ctx: ctx, watcher: w}
	return &stoppable{watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), observed, reporter), sync.OnceFunc(d.end)}, nil
}

// observedDecoder is a decoder that notes what went wrong before the Reflector handles it.
type observedDecoder struct {
	*decoder
	ctx     context.Context // of the watch; it ends when the watch is stopped
	watcher *watcher
	over    bool // the position is gone, and the Reflector is not told of it
}

// stoppable is a watch that the Reflector stops, however it ended. The decoder is closed under a lock of the watch, so
// what may wait long comes after that.
type stoppable struct {
	watch.Interface
	end func()
}

// Stop is watch.Interface's.
func (w *stoppable) Stop() {
	w.Interface.Stop()
	w.end()
}

// Decode is decoder.Decode. A watch that was stopped ends as it should: the Reflector opens the next one at once. So
// does one whose position is gone: what follows of that is found out before the next one.
func (d *observedDecoder) Decode() (watch.EventType, runtime.Object, error) {
	if d.over {
		return "", nil, io.EOF
	}
	event, object, err := d.decoder.Decode()
	switch {
	case err != nil && d.ctx.Err() != nil:
		return "", nil, io.EOF
	case err != nil && err != io.EOF:
		d.watcher.broke(err)
	case err == nil && event == watch.Error:
		failure := apierrors.FromObject(object)
		if d.over = d.watcher.noteGone(failure); d.over {
			return watch.Bookmark, &metav1.PartialObjectMetadata{}, nil // the Reflector takes this for a watch that works
		}
		d.watcher.Observer.Failed(d.watcher.stream, failure)
	case err == nil:
		d.watcher.refusals.newest.Store(nil) // the position has a server
	}
	return event, object, err
}

// broke takes the error of a watch that could not be read to its end. A reconcile is due where what cannot be read
// stands at the position for the second time.
func (w *watcher) broke(err error) {
	w.origin.trust.doubt()
	if w.endings.broke(w.cursor.position.ResourceVersion, frame.IsUnreadable(err)) {
		w.schedule.add(change.Owed{Reason: change.Stale})
	}
	w.Observer.Failed(w.stream, fmt.Errorf("read the watch of %s: %w", w.stream, err))
}

// noteGone notes that the position is unavailable, where the error says so: before the next watch it is judged.
func (w *watcher) noteGone(err error) bool {
	if !isGone(err) {
		return false
	}
	w.origin.trust.doubt()
	w.remnant.gone(err)
	w.refusals.note(err, time.Now())
	return true
}

// watchEnded takes a watch that ended, which began when the server stood at the version.
func (w *watcher) watchEnded(frames int, orderly bool, took time.Duration, version string) {
	w.origin.trust.forgetAnswers()
	if w.remnant.ended(took); took >= time.Second {
		w.refusals.newest.Store(nil)
		w.origin.watched = version
	}
	if w.endings.ended(frames, orderly, took, w.schedule.isDue()) {
		w.schedule.add(change.Owed{Reason: change.Stale})
	}
	w.silence.note(frames == 0 && orderly, took, version)
}

// beyondOutage does what needs the server. Where nobody answers it waits until somebody does, and does it once more: a
// server that answers that question and not this one is left to the Reflector's backoff.
func (w *watcher) beyondOutage(ctx context.Context, do func() error) error {
	err := do()
	if !isUnreachable(err) || ctx.Err() != nil {
		return err
	}
	w.permit.giveBack()
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
func (w *watcher) fail(ctx context.Context, err error) {
	w.origin.trust.suspect.Store(true)
	if !apierrors.IsTooManyRequests(err) { // as a server says that begins to serve a resource
		w.origin.trust.forgetAnswers()
	}
	if apierrors.IsNotFound(err) {
		w.Client.redial(ctx, time.Time{}) // another server may serve it
	}
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		w.Observer.Failed(w.stream, err)
	}
}
