package source

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/kubecdc/kubecdc/internal/change"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pods() change.Stream {
	return change.Stream{Resource: change.Resource{Version: "v1", Name: "pods", Kind: "Pod"}}
}

// recorder is a Line and an Inventory: what is pushed counts as delivered and saved at once.
type recorder struct {
	mu       sync.Mutex
	changed  *sync.Cond
	lines    []string
	position change.Position
	objects  map[string]change.Entry
	sinkOnly []change.SinkOnly
	drift    []string
	failures []string
	epochs   string            // of the records, each once
	met      string            // the clusters that are others, each with what was in line before
	unsaved  bool              // something was pushed, and nobody waited for it since
	room     int               // so many records are taken, if it is not 0; the rest is refused
	after    map[string]string // by sink: how far the snapshots that it is owed came

	images  map[string]change.Image // of the joined keys; nil where no objects are kept
	shape   func(*change.Record)    // nil is none
	drained func()                  // nil is none
	told    []string                // of each object's record, what lines do not say
	records []*change.Record        // of objects
}

// meet is Config.Meet.
func (r *recorder) meet(uid string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.met += fmt.Sprint(uid, " behind ", len(r.lines), " ")
	return nil
}

func newRecorder(entries ...string) *recorder {
	r := &recorder{objects: map[string]change.Entry{}, after: map[string]string{}}
	r.changed = sync.NewCond(&r.mu)
	for _, text := range entries { // "name version"
		name, version, _ := strings.Cut(text, " ")
		key := change.Key{Namespace: "n", Name: name}
		r.objects[key.String()] = change.Entry{Key: key, UID: "uid-" + name, ResourceVersion: version}
	}
	return r
}

// Push notes the record as "op name version", with what is special about it behind.
func (r *recorder) Push(ctx context.Context, rec *change.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room > 0 {
		if r.room--; r.room == 0 {
			r.room = -1
		}
	}
	if r.room < 0 {
		r.changed.Broadcast()
		return errors.New("the process dies here")
	}
	line := strings.Join(strings.Fields(fmt.Sprintf("%s %s %s", rec.Op, rec.Key.Name, rec.ResourceVersion)), " ")
	if rec.Snapshot != nil && !rec.Op.OfObject() {
		line += " " + string(rec.Snapshot.Reason)
	}
	if rec.FinalStateUnknown {
		line += " unseen"
	}
	if rec.Sink != "" {
		line += " to " + rec.Sink
	}
	if rec.Withheld != "" {
		line += " withheld: " + rec.Withheld
	}
	if r.unsaved = true; rec.Op != change.Bookmark || !rec.Position.UnderWay() { // else it is only saved
		r.lines = append(r.lines, line)
	}
	if !strings.HasSuffix(r.epochs, rec.Epoch) {
		r.epochs = strings.TrimSpace(r.epochs + " " + rec.Epoch)
	}
	r.apply(rec)
	r.look(rec)
	r.changed.Broadcast()
	return nil
}

// look notes the record of an object as "op name version", what was before, and what is special about it.
func (r *recorder) look(rec *change.Record) {
	if object, changed := rec.Keeps(); changed && r.images != nil {
		r.images[rec.Key.String()] = change.Image{UID: rec.UID, Object: object}
	}
	if !rec.Op.OfObject() {
		return
	}
	text := fmt.Sprintf("%s %s %s", rec.Op, rec.Key.Name, rec.ResourceVersion)
	if rec.Before != nil {
		text += " after " + versionOf(rec.Before)
	}
	if rec.Sink != "" {
		text += " to " + rec.Sink
	}
	if rec.Filtered {
		text += " to nobody"
	}
	if rec.Last {
		text += " last"
	}
	r.told = append(r.told, text)
	r.records = append(r.records, rec)
}

// versionOf is the resourceVersion in an object of the scripted server.
func versionOf(object []byte) string {
	_, rest, _ := strings.Cut(string(object), `"resourceVersion":"`)
	version, _, _ := strings.Cut(rest, `"`)
	return version
}

// Last is what is kept of the object.
func (r *recorder) Last(_ string, key change.Key) (change.Image, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	image, found := r.images[key.String()]
	return image, found && image.Object != nil, nil
}

// keep makes the recorder keep objects; those that it has are "name version".
func (r *recorder) keep(objects ...string) {
	r.images = map[string]change.Image{}
	for _, text := range objects {
		name, version, _ := strings.Cut(text, " ")
		r.images["n/"+name] = change.Image{UID: "uid-" + name, Object: []byte(podJSON(name, version))}
	}
}

func (r *recorder) apply(rec *change.Record) {
	if rec.Position != (change.Position{}) {
		r.position = rec.Position
	}
	switch {
	case rec.Op == change.Sync && rec.Sink != "" && rec.Snapshot.Ordered:
		r.after[rec.Sink] = rec.Key.String()
	case !rec.Op.OfObject() || rec.Sink != "":
	case rec.Op == change.Deleted:
		delete(r.objects, rec.Key.String())
	default:
		r.objects[rec.Key.String()] = change.Entry{Key: rec.Key, UID: rec.UID, ResourceVersion: rec.ResourceVersion}
	}
}

// Pace is of sinks that take everything at once.
func (r *recorder) Pace(ctx context.Context, _ *change.Stream, _ string, _ int) (waited bool, err error) {
	return false, ctx.Err()
}

func (r *recorder) SinkOnly(change.Stream) []change.SinkOnly { return r.sinkOnly }

func (r *recorder) Drain(ctx context.Context, _ change.Stream) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsaved = false
	if r.drained != nil {
		r.drained()
	}
	return ctx.Err()
}

// Ended is of a life that delivered no delete at its position.
func (r *recorder) Ended(string, string, string) (bool, error) { return false, nil }

func (r *recorder) Lookup(_ string, key change.Key) (change.Entry, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry, found := r.objects[key.String()]
	return entry, found, nil
}

func (r *recorder) Scan(_, behind string) iter.Seq2[change.Entry, error] {
	r.mu.Lock()
	defer r.mu.Unlock()
	var sorted []change.Entry
	for _, entry := range r.objects {
		if behind != "" && entry.Key.String() <= behind {
			continue
		}
		sorted = append(sorted, entry)
	}
	slices.SortFunc(sorted, func(a, b change.Entry) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return func(yield func(change.Entry, error) bool) {
		for _, entry := range sorted {
			if !yield(entry, nil) {
				return
			}
		}
	}
}

// corrected notes drift as "op name had -> has".
func (r *recorder) corrected(_ change.Stream, c change.Correction) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drift = append(r.drift, fmt.Sprintf("%s %s %s -> %s", c.Op, c.Key.Name, c.HadVersion, c.Version))
}

// wait returns the lines once the last of them is as wanted.
func (r *recorder) wait(t *testing.T, last string) string {
	t.Helper()
	return r.until(t, last, func() bool { return len(r.lines) > 0 && r.lines[len(r.lines)-1] == last })
}

// has returns when there is the line, or when ctx ends.
func (r *recorder) has(ctx context.Context, line string) {
	stop := context.AfterFunc(ctx, r.changed.Broadcast)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !slices.Contains(r.lines, line) && ctx.Err() == nil {
		r.changed.Wait()
	}
}

// tells says whether there is the line.
func (r *recorder) tells(line string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.lines, line)
}

// await returns when there are so many lines.
func (r *recorder) await(t *testing.T, n int) {
	t.Helper()
	r.until(t, fmt.Sprint(n, " lines"), func() bool { return len(r.lines) >= n })
}

func (r *recorder) until(t *testing.T, what string, reached func() bool) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	stop := context.AfterFunc(ctx, r.changed.Broadcast)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !reached() {
		if ctx.Err() != nil {
			t.Fatalf("%s never came; there are\n%s", what, strings.Join(r.lines, "\n"))
		}
		r.changed.Wait()
	}
	return strings.Join(r.lines, "\n")
}
