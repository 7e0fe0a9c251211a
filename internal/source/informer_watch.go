package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// run reads until ctx ends, or no sink is left. It returns when the goroutines of the Reflector and the reader are
// gone.
func (i *Informer) run(ctx context.Context) {
	// The Reflector logs each failure again and again; the observer hears of them instead.
	ctx = klog.NewContext(ctx, logr.Discard())
	ctx, end := context.WithCancel(ctx)
	defer end()
	i.turns.take()
	i.end = end
	i.turns.give()
	discard := logr.Discard()
	through := cache.ToListWatcherWithWatchListSemantics(
		&cache.ListWatch{ListWithContextFunc: i.list, WatchFuncWithContext: i.openWatch}, i,
	)
	nothing := &cache.FakeCustomStore{} // the decoder and comparisons queue the records
	reflector := cache.NewReflectorWithOptions(through, nil, nothing, cache.ReflectorOptions{
		Logger: &discard, Name: i.stream.String(), TypeDescription: i.stream.String(), Backoff: i.retries,
	})
	var reader sync.WaitGroup
	reader.Go(func() { i.readDue(ctx) })
	reflector.RunWithContext(ctx)
	reader.Wait()
	i.giveBack()
}

// IsWatchListSemanticsUnSupported tells the Reflector to ask for lists, and so leaves them to us.
func (*Informer) IsWatchListSemanticsUnSupported() bool { return true }

// list returns an empty list, so that the lists of the Reflector, at each start and after many kinds of watch errors,
// cost nothing.
func (i *Informer) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	i.turns.take()
	version := cmp.Or(i.brought, "1")
	i.turns.give()
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}, ctx.Err()
}

// openWatch is watch, in spite of an outage. If no server answers, it waits until one does, and calls watch once more:
// a server that answers /livez and not this is left to the Reflector's backoff.
func (i *Informer) openWatch(ctx context.Context, options metav1.ListOptions) (opened watch.Interface, err error) {
	opened, err = i.watch(ctx, options)
	if IsUnreachable(err) && ctx.Err() == nil {
		i.giveBack()
		for err = i.Client.awaitAnswer(ctx); err != nil && ctx.Err() == nil; err = i.Client.awaitAnswer(ctx) {
			i.fail(ctx, err)
		}
		if err == nil {
			opened, err = i.watch(ctx, options)
		}
	}
	if err != nil {
		i.giveBack()
	}
	if errors.Is(err, errNobody) {
		i.end()
	}
	return opened, err
}

// watch opens a watch at the lowest position of the sinks.
func (i *Informer) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if refused := i.shared.isRefused(); refused != nil {
		i.fail(ctx, refused)
		return nil, refused
	}
	if err := i.believeOrAsk(ctx); err != nil {
		return nil, err
	}
	if i.exit == nil {
		exit, err := i.Gate.enter(ctx)
		if err != nil {
			return nil, err
		}
		i.exit = exit
	}
	defer i.giveBack()
	if err := i.moveQuiet(ctx); err != nil {
		return nil, err
	}
	from, err := i.begin(ctx)
	if err != nil {
		if !errors.Is(err, errNobody) {
			i.turns.take()
			err = i.refuse(ctx, err)
			i.turns.give()
			i.fail(ctx, err)
		}
		return nil, err
	}
	return i.open(ctx, from, options.TimeoutSeconds)
}

// giveBack gives back the stream's place in the Gate.
func (i *Informer) giveBack() {
	if i.exit != nil {
		i.exit()
		i.exit = nil
	}
}

// believeOrAsk decides whether to believe a server that said that the position is gone: then the sinks there are told
// of a gap. Otherwise the next watch goes to another server.
func (i *Informer) believeOrAsk(ctx context.Context) error {
	refused := i.refusal.Load()
	if refused == nil {
		return nil
	}
	if !refused.convinces(i.Client.servers(ctx)) {
		i.giveBack()
		select {
		case <-time.After(refusalPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		i.Client.redial(ctx, refused.last)
		return nil
	}
	i.refusal.Store(nil)
	i.Observer.Failed(*i.stream, refused.err)
	i.turns.take()
	i.forgot = change.VersionAbove(i.from)
	i.turns.give()
	if !i.endings.isFirstGone() {
		return apierrors.NewResourceExpired("a comparison is due before the next watch") // the Reflector lists then
	}
	return nil
}

// open opens a watch from the version. run is the context of the Informer: feed waits for sinks until it ends.
func (i *Informer) open(run context.Context, from string, seconds *int64) (watch.Interface, error) {
	ctx, stop := context.WithCancel(run)
	i.turns.take()
	resolved := time.Duration(0)
	for _, seat := range i.seats {
		if every := seat.Resolved; every != 0 && (resolved == 0 || every < resolved) {
			resolved = every
		}
	}
	i.turns.give()
	body, err := i.origin.collection.watch(ctx, from, i.silence.limit(seconds, resolved))
	if err != nil {
		stop()
		if !i.noteGone(err) {
			i.fail(ctx, err)
		}
		return nil, err
	}
	i.Observer.Watching(*i.stream, from)
	cut := i.origin.collection.options()
	cut.Lend = i.Shape != nil
	d := &feed{
		ctx: run, Informer: i, body: body, frames: frame.NewReader(body, cut), number: i.turns.opened(),
		began: time.Now(), watch: ctx, stop: stop, stood: i.origin.version,
	}
	poke(i.comparer.due)
	reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")
	d.decoded = watch.NewStreamWatcherWithLogger(klog.FromContext(ctx), d, reporter)
	return d, nil
}

// noteGone notes that the position is gone, if the error says so. believeOrAsk judges that before the next watch.
func (i *Informer) noteGone(err error) bool {
	if !IsGone(err) {
		return false
	}
	i.origin.doubt()
	i.refusal.Store(i.refusal.Load().again(err, time.Now()))
	return true
}

// watchEnded evaluates a watch that has ended. The server stood at the version when it began.
func (i *Informer) watchEnded(frames int, orderly bool, took time.Duration, version string) {
	i.origin.forgetAnswers()
	if took >= time.Second {
		i.refusal.Store(nil)
		i.origin.watched = version
	}
	if i.endings.ended(frames, orderly, took) {
		i.turns.take()
		i.stale = true
		i.turns.give()
	}
	i.silence.note(frames == 0 && orderly, took, version)
}

// fail reports an error, unless it is only our own stop.
func (i *Informer) fail(ctx context.Context, err error) {
	i.origin.suspect.Store(true)
	if !apierrors.IsTooManyRequests(err) { // which a server answers that begins to serve a resource
		i.origin.forgetAnswers()
	}
	if apierrors.IsNotFound(err) {
		i.Client.redial(ctx, time.Time{}) // another server may serve it
	}
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		i.Observer.Failed(*i.stream, err)
	}
}

// feed is a watch, and its watch.Decoder. It offers the records to the sinks itself, in the goroutine that has read
// them: to pass each to the Reflector would wake a goroutine, which for small objects costs more than all the rest. The
// Reflector only learns that a watch has begun, and how it ended.
type feed struct {
	*Informer
	ctx    context.Context // of the Informer
	watch  context.Context // ends when the watch is stopped
	stop   context.CancelFunc
	body   io.ReadCloser
	frames *frame.Reader
	// decoded are the events of Decode; it is set when the watch is open.
	decoded *watch.StreamWatcher
	stood   string // where the server stood when the watch began
	over    bool   // the position is gone, and the Reflector is not told of it

	number int       // of the watch
	began  time.Time // when it was asked for

	// the turn guards the following
	count   int           // frames
	orderly bool          // the server has ended the watch
	took    time.Duration // until then
	closed  bool
}

// Decode offers the records of the watch to the sinks. It returns the first frame, as a bookmark, so that the Reflector
// knows that the watch works; an error that the server sends; and the end. It blocks until there is one of these. A
// watch that was stopped ends in order, so that the Reflector opens the next one at once. So does a watch whose
// position is gone: that is judged before the next one.
func (d *feed) Decode() (watch.EventType, runtime.Object, error) {
	if d.over {
		return "", nil, io.EOF
	}
	for {
		f, err := d.frames.Next()
		if err != nil {
			return "", nil, d.finish(err)
		}
		first := d.take(&f)
		if d.watch.Err() != nil {
			return "", nil, io.EOF
		}
		switch {
		case f.Type == frame.Error:
			return d.failed(&f)
		case first:
			d.refusal.Store(nil) // a server has the position
			version := metav1.ObjectMeta{ResourceVersion: strings.Clone(f.Object.ResourceVersion)}
			return watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: version}, nil
		}
	}
}

// failed handles an error that the server sends.
func (d *feed) failed(f *frame.Frame) (watch.EventType, runtime.Object, error) {
	status := new(metav1.Status)
	if err := json.Unmarshal(f.Status, status); err != nil {
		return "", nil, d.finish(fmt.Errorf("decode the server's error %.200q: %w", f.Status, err))
	}
	failure := apierrors.FromObject(status)
	if d.over = d.noteGone(failure); d.over {
		return watch.Bookmark, &metav1.PartialObjectMetadata{}, nil // the Reflector takes this for a watch that works
	}
	d.Observer.Failed(*d.stream, failure)
	return watch.Error, status, nil
}

// finish notes how the watch ended, and when, unless it was closed; its turn may come much later. If what cannot be
// read is at the same position for the second time, no watch can go on from any position.
func (d *feed) finish(err error) error {
	took := time.Since(d.began)
	d.turns.take()
	defer d.turns.give()
	if !d.closed && err == io.EOF {
		d.orderly, d.took = true, took
	}
	d.turns.closed(d.number)
	switch {
	case d.watch.Err() != nil:
		return io.EOF
	case err != io.EOF:
		d.origin.doubt()
		d.stale = d.stale || d.endings.broke(d.brought, frame.IsUnreadable(err))
		d.Observer.Failed(*d.stream, fmt.Errorf("read the watch of %s: %w", d.stream, err))
	}
	return err
}

// take offers the frame's record to the sinks, and says whether it is the watch's first. After a record that failed,
// the others are left out: the watch is being stopped, and the next one continues from the positions.
func (d *feed) take(f *frame.Frame) (first bool) {
	d.turns.take()
	defer d.turns.give()
	d.count++
	if f.Type == frame.Error || d.closed || d.watch.Err() != nil {
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
			return d.origin.unordered("a bookmark has the resourceVersion %.40q", version)
		}
		d.brings(version)
		d.bookmark(strings.Clone(version))
		return nil
	}
	if err := d.origin.checkVersion(&f.Object, ""); err != nil {
		return err
	}
	d.brings(version)
	rec := d.record(opOf(f.Type), &f.Object)
	again, err := d.seen.note(&rec, d.number)
	if err != nil {
		return d.origin.unordered("%s at %.40q: %v", rec.Key, rec.ResourceVersion, err)
	}
	again = again && version == d.brought
	if d.Shape != nil {
		d.lent, d.lender = rec.Object, d.frames
		defer func() { d.lent, d.lender = nil, nil }()
	}
	if !again {
		d.Observer.tellUnreadable(&rec, f.Object.Err)
	}
	rec.DuringSnapshot = rec.Op == change.Updated && d.comparer.is
	err = d.tell(d.ctx, &rec, again)
	d.proof = proofOf(&rec)
	return err
}

// Close ends a Decode that is waiting for the server. watch.StreamWatcher calls it once.
func (d *feed) Close() { d.body.Close() }

// ResultChan is watch.Interface's.
func (d *feed) ResultChan() <-chan watch.Event { return d.decoded.ResultChan() }

// Stop is watch.Interface's, which the Reflector calls however the watch ended. It waits for a record that is being
// queued. None follows it, so that whoever stopped the watch may go on with the stream (I3). The decoder is closed
// under a lock of the watch, so what may wait long comes after that.
func (d *feed) Stop() {
	d.decoded.Stop()
	d.turns.take()
	if d.closed {
		d.turns.give()
		return
	}
	d.closed = true
	frames, orderly, took := d.count, d.orderly, d.took
	if !orderly {
		took = time.Since(d.began)
	}
	d.turns.closed(d.number)
	d.turns.give()
	d.stop()
	d.watchEnded(frames, orderly, took, d.stood)
}
