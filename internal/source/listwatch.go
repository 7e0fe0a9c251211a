package source

import (
	"context"
	"fmt"
	"io"
	"net/http"
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

// listerWatcher is what the Reflector lists and watches through.
type listerWatcher struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells the Reflector to ask for lists, and so leaves them to us.
func (listerWatcher) IsWatchListSemanticsUnSupported() bool { return true }

func (s *Stream) listerWatcher() listerWatcher {
	return listerWatcher{&cache.ListWatch{ListWithContextFunc: s.listForReflector, WatchFuncWithContext: s.watchAside}}
}

// listForReflector runs the reconciles that are due and answers with an empty list at the stream's position: "nothing
// new". So the Reflector, which lists at each start and after many kinds of watch error, costs a list only where the
// position cannot be continued.
func (s *Stream) listForReflector(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.listing.Add(1)
	defer s.listing.Done()
	if options.ResourceVersion == "" { // the Reflector found its version unavailable
		s.schedule.add(change.Owed{Reason: change.Gone})
	}
	if err := s.beyondOutage(ctx, func() error { return s.reconcileDue(ctx) }); err != nil {
		s.permit.giveBack()
		return nil, err
	}
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: s.cursor.position.ResourceVersion}}, nil
}

// reconcileDue runs what is due, now that it is known whose versions the server speaks of.
func (s *Stream) reconcileDue(ctx context.Context) error {
	if refused := s.isRefused(); refused != nil {
		s.fail(ctx, refused)
		return refused
	}
	if s.schedule.isDue() {
		s.schedule.stopReader()
	}
	for s.schedule.isDue() {
		err := s.permit.enter(ctx, s.precedence())
		if err == nil {
			err = s.checkServer(ctx)
		}
		if err == nil {
			err = s.reconcile(ctx, s.schedule.begin()[0])
			s.schedule.done(err != nil)
		}
		if err != nil {
			err = s.refuse(ctx, err)
			s.fail(ctx, err)
			return err
		}
		if s.schedule.isDue() {
			s.permit.giveBack() // others have their turn
		}
	}
	return nil
}

// checkServer makes a reconcile due where the server has another history.
func (s *Stream) checkServer(ctx context.Context) error {
	p := s.proof
	if s.schedule.isDue() {
		p = proof{} // all is compared in any case
	}
	other, err := s.server.hasOther(ctx, s.cursor.position.ResourceVersion, p)
	if other {
		s.schedule.add(change.Owed{Reason: change.Epoch})
	}
	return err
}

// errReconcileDue ends the Reflector's watch loop, so that it lists.
func errReconcileDue() error {
	return apierrors.NewResourceExpired("a reconcile is due before the next watch")
}

// watchAside is watchForReflector in a goroutine that ends with it. To open a watch takes a deep stack for a moment,
// and the Reflector's goroutine, which then waits for as long as the watch lives, would keep it: 8 KiB a stream.
func (s *Stream) watchAside(ctx context.Context, options metav1.ListOptions) (opened watch.Interface, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = s.beyondOutage(ctx, func() (err error) {
			opened, err = s.watchForReflector(ctx, options)
			return err
		})
	}()
	<-done
	return opened, err
}

// watchForReflector opens a watch at the stream's position. It runs what became due meanwhile: were it left to the next
// list, the Reflector's backoff, which is meant for failures, would hold up the stream for each.
func (s *Stream) watchForReflector(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if err := s.permit.enter(ctx, s.precedence()); err != nil {
		return nil, err
	}
	defer s.permit.giveBack()
	if err := s.checkServer(ctx); err != nil && s.isRefused() == nil {
		s.fail(ctx, err)
		return nil, err
	}
	if err := s.reconcileDue(ctx); err != nil {
		return nil, err
	}
	if err := s.moveQuiet(ctx); err != nil {
		s.fail(ctx, err)
		return nil, err
	}
	run := ctx
	ctx, stop := context.WithCancel(run)
	if !s.schedule.mayWatch(stop) {
		stop()
		return nil, errReconcileDue()
	}
	from := s.cursor.resume()
	body, err := s.server.collection.watch(ctx, from, s.silence.limit(options.TimeoutSeconds))
	if err != nil {
		stop()
		s.noteGone(err)
		s.fail(ctx, err)
		return nil, err
	}
	s.Observer.Watching(s.stream, from)
	asked := s.server.version
	d := &decoder{ctx: run, stream: s, body: body, frames: s.framesOf(body), number: s.turns.opened(), began: time.Now()}
	s.schedule.letRead(run)
	d.ended = func(frames int, orderly bool, took time.Duration) {
		stop()
		s.watchEnded(frames, orderly, took, asked)
	}
	reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")
	return watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), &observedDecoder{decoder: d, ctx: ctx, stream: s}, reporter), nil
}

// framesOf are the frames of a watch. Their objects are lent where there are rules.
func (s *Stream) framesOf(body io.Reader) *frame.Reader {
	options := s.server.collection.options()
	options.Lend = s.Shape != nil
	return frame.NewReader(body, options)
}

// observedDecoder is a decoder that notes what went wrong before the Reflector handles it.
type observedDecoder struct {
	*decoder
	ctx    context.Context // of the watch; it ends when the watch is stopped
	stream *Stream
	over   bool // the position is gone, and the Reflector is not told of it
}

// Decode is decoder.Decode. A watch that was stopped ends as it should: the Reflector opens the next one at once. So
// does one whose position is gone, where that is no fault that repeats itself: what follows is read at once, too.
func (d *observedDecoder) Decode() (watch.EventType, runtime.Object, error) {
	if d.over {
		return "", nil, io.EOF
	}
	event, object, err := d.decoder.Decode()
	switch {
	case err != nil && d.ctx.Err() != nil:
		return "", nil, io.EOF
	case err != nil && err != io.EOF:
		d.stream.server.trust.doubt()
		d.stream.noteBroken(err)
		d.stream.Observer.Failed(d.stream.stream, fmt.Errorf("read the watch of %s: %w", d.stream.stream, err))
	case err == nil && event == watch.Error:
		failure := apierrors.FromObject(object)
		d.stream.noteGone(failure)
		d.stream.Observer.Failed(d.stream.stream, failure)
		if d.over = isGone(failure) && d.stream.endings.isFirstGone(); d.over {
			return watch.Bookmark, &metav1.PartialObjectMetadata{}, nil // the Reflector takes this for a watch that works
		}
	}
	return event, object, err
}

// noteGone makes a reconcile due where the error says that the position is unavailable.
func (s *Stream) noteGone(err error) {
	if isGone(err) {
		s.remnant.gone(err)
		s.schedule.add(change.Owed{Reason: change.Gone})
	}
}

// watchEnded takes a watch that ended, which began when the server stood at the version.
func (s *Stream) watchEnded(frames int, orderly bool, took time.Duration, version string) {
	s.server.trust.forgetAnswers()
	s.remnant.ended(took)
	if s.endings.ended(frames, orderly, took, s.schedule.isDue()) {
		s.schedule.add(change.Owed{Reason: change.Stale})
	}
	s.silence.note(frames == 0 && orderly, took, version)
}
