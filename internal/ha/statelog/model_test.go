package statelog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/sink"
)

var errCrash = errors.New("crash")

// broker is a log in memory, of which compaction may take what a newer message of the slot replaced.
type broker struct {
	random    *rand.Rand
	messages  []stored
	count     int      // of all messages that there ever were
	ever      [][]byte // their values
	epoch     int
	left      int    // messages that are taken before the next crash; negative is any number
	lazy      bool   // compaction takes some of what it may
	meanwhile func() // happens after each message that is read
}

type stored struct {
	slot  string
	value []byte
	at    int // among all that there ever were, from 1
}

func newBroker(random *rand.Rand, lazy bool) *broker {
	return &broker{random: random, left: -1, lazy: lazy, meanwhile: func() {}}
}

// logSink is one writer's connection.
type logSink struct {
	*broker
	epoch int
}

func (s *logSink) Open(context.Context, sink.Opening) error {
	s.broker.epoch++
	s.epoch = s.broker.epoch
	return nil
}

func (s *logSink) Close(context.Context) error { return nil }

func (s *logSink) Write(_ context.Context, batch []sink.Message) (sink.Mark, error) {
	for _, m := range batch {
		if s.left == 0 {
			return "", errCrash
		}
		s.left--
		if s.epoch != s.broker.epoch {
			return "", &sink.PermanentError{Err: errors.New("fenced"), Fenced: true}
		}
		s.put(stored{slot: m.Destination, value: slices.Clone(m.Value)})
	}
	return "x", nil
}

func (b *broker) put(m stored) {
	b.count++
	m.at = b.count
	b.ever = append(b.ever, m.value)
	b.messages = append(b.messages, m)
	if b.lazy && b.random.IntN(4) > 0 {
		return
	}
	last := map[string]int{}
	for i, m := range b.messages {
		last[m.slot] = i
	}
	at := -1
	b.messages = slices.DeleteFunc(b.messages, func(m stored) bool {
		at++
		return last[m.slot] != at && (!b.lazy || b.random.IntN(2) == 0)
	})
}

// logReader reads what is there when it comes to it.
type logReader struct {
	*broker
	seen int // the message that was read last
}

func (r *logReader) Read(_ context.Context, each func(*sink.Stored) error) error {
	for end := r.count; ; r.meanwhile() {
		i := slices.IndexFunc(r.messages, func(m stored) bool { return m.at > r.seen && m.at <= end })
		if i < 0 {
			return nil
		}
		m := r.messages[i]
		r.seen = m.at
		if err := each(&sink.Stored{Place: "here", Value: m.value}); err != nil {
			return err
		}
	}
}

func (r *logReader) Close() error { return nil }

func (b *broker) place() Place {
	return Place{
		Name: "topic test", Sink: &logSink{broker: b},
		Reader: func() (sink.Reader, error) { return &logReader{broker: b}, nil },
		Of:     func(slot string) (string, []byte) { return slot, nil },
	}
}

// world is a state, what it was, and its log.
type world struct {
	*broker
	t       *testing.T
	rows    map[string]string
	files   map[string]string
	history []map[string]string // the state as it was
	logged  []byte
	queue   *Queue
	session *session
	known   int // the oldest moment that the log may have, by place in history
	taken   int // the newest that is in it if what is written now is
}

func newWorld(t *testing.T, random *rand.Rand, lazy bool) *world {
	w := &world{broker: newBroker(random, lazy), t: t, rows: map[string]string{}, files: map[string]string{}, known: -1}
	w.note()
	return w
}

// oneWorld is the same one each time, whose log is compacted at once.
func oneWorld(t *testing.T) *world { return newWorld(t, rand.New(rand.NewPCG(1, 1)), false) }

func (w *world) all() map[string]string {
	all := maps.Clone(w.rows)
	for name, content := range w.files {
		all[string(checkpoint.FileKey(name))] = content
	}
	return all
}

func (w *world) Page(from []byte, size int, begin func() bool) (checkpoint.Changes, []byte, error) {
	if !begin() {
		return nil, from, nil
	}
	w.taken = len(w.history) - 1
	var page, rows checkpoint.Changes
	end := []byte("X")
	for _, key := range slices.Sorted(maps.Keys(w.rows)) {
		if key < string(from) {
			continue
		}
		if len(rows) >= size {
			return append(page.Clear(from, []byte(key)), rows...), []byte(key), nil
		}
		rows = rows.Set([]byte(key), []byte(w.rows[key]))
	}
	return append(page.Clear(from, end), rows...), nil, nil
}

func (w *world) TakeLogged([]byte) ([]byte, error) {
	place := w.logged
	w.logged = nil
	return place, nil
}

func (w *world) SetLogged(place []byte) error { w.logged = place; return nil }

func (w *world) note() { w.history = append(w.history, w.all()) }

// commit changes some rows.
func (w *world) commit() {
	var c checkpoint.Changes
	for range 1 + w.random.IntN(4) {
		key := string(rune('A'+w.random.IntN(12))) + strconv.Itoa(w.random.IntN(6))
		switch w.random.IntN(8) {
		case 0:
			c = c.Remove([]byte(key))
		case 1:
			c = c.Clear([]byte(key), []byte(key[:1]+"~"))
		default:
			c = c.Set([]byte(key), fmt.Appendf(nil, "%d-%d", len(w.history), w.random.IntN(1000)))
		}
	}
	must(w.t, c.Fold(w.rows))
	w.note()
	w.queue.Record(c)
}

// letter changes a file.
func (w *world) letter() {
	name := "sink/" + strconv.Itoa(w.random.IntN(4))
	var c checkpoint.Changes
	if w.files[name] != "" && w.random.IntN(2) == 0 {
		delete(w.files, name)
		c = c.Remove(checkpoint.FileKey(name))
	} else {
		w.files[name] = strconv.Itoa(len(w.history))
		c = c.Set(checkpoint.FileKey(name), []byte(w.files[name]))
	}
	w.note()
	w.queue.Record(c)
}

func (w *world) names() ([]string, error) { return slices.Sorted(maps.Keys(w.files)), nil }

func (w *world) file(name string) ([]byte, error) {
	if content, found := w.files[name]; found {
		return []byte(content), nil
	}
	return nil, nil
}

// begin opens the log, as a new process does.
func (w *world) begin() error { return w.beginWith(nil) }

// beginWith goes on in a log that was claimed, nil is that it was not.
func (w *world) beginWith(claimed *Claimed) error {
	w.queue = NewQueue()
	w.queue.most = 400
	place := w.place()
	if claimed != nil {
		place = claimed.place
	}
	l, err := New(Options{
		Place: place, Claimed: claimed, Of: Identity{Cluster: "c", Instance: "i"}, Store: w, Queue: w.queue, Files: w.names, File: w.file,
		Grain: Grain{Part: 60, Page: 80, Since: 500}, Failed: func(error) {}, Written: func() { w.known = max(w.known, w.taken) },
	})
	if err != nil {
		return err
	}
	w.session, err = l.begin(context.Background())
	return err
}

// become makes the rows the state, of which the log has everything at the place.
func (w *world) become(rows map[string]string, place []byte) {
	w.rows, w.files, w.logged = map[string]string{}, map[string]string{}, place
	for key, value := range rows {
		if key[0] == 'X' {
			w.files[key[1:]] = value
		} else {
			w.rows[key] = value
		}
	}
	w.note()
	w.known = len(w.history) - 1
	w.taken = w.known
}

// restored is what a new process finds in the log.
func (w *world) restored() (map[string]string, []byte, error) {
	found, err := Look(context.Background(), w.place(), Bid{Of: Identity{Cluster: "c"}})
	if err != nil {
		return nil, nil, err
	}
	into := target{}
	place, err := found.Into(context.Background(), into.Apply)
	return into, place, err
}

type target map[string]string

func (t target) Apply(c checkpoint.Changes, _ []byte) error { return c.Fold(t) }

// step lets the log write once, unless it crashes.
func (w *world) step() error {
	w.taken = len(w.history) - 1
	_, err := w.session.step(context.Background())
	return err
}

// judge compares what the log has with what the state was: it is one of its moments, and none before what the log was
// known to have.
func (w *world) judge() (at int) {
	w.t.Helper()
	have, _, err := w.restored()
	if errors.Is(err, ErrNothing) && w.known < 0 {
		return -1
	}
	if err != nil {
		w.t.Fatalf("restore: %v", err)
	}
	for i := max(w.known, 0); i < len(w.history); i++ {
		if maps.Equal(have, w.history[i]) {
			return i
		}
	}
	w.t.Fatalf("the log has a state that never was since moment %d of %d:\n%v", w.known, len(w.history), have)
	return 0
}

// TestI5TheLogHasAStateThatWas lets a log crash between any two messages, loses the disk now and then, and compares
// what the log has with all that the state ever was.
func TestI5TheLogHasAStateThatWas(t *testing.T) {
	seeds := 400
	if testing.Short() {
		seeds = 50
	}
	lives, restored, resumed := 0, 0, 0
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		w := newWorld(t, random, seed%2 == 0)
		for range 12 {
			lives++
			w.taken = w.known
			w.left = random.IntN(60)
			err := w.begin()
			if err == nil && w.session.whole {
				resumed++
			}
			for range 60 {
				switch n := random.IntN(10); {
				case err != nil:
				case n < 4:
					w.commit()
				case n < 5:
					w.letter()
				default:
					err = w.step()
				}
			}
			if err != nil && !errors.Is(err, errCrash) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			w.left = -1
			at := w.judge()
			if at >= 0 && random.IntN(3) == 0 { // the disk is lost
				restored++
				rows, place, err := w.restored()
				must(t, err)
				w.become(rows, place)
			}
		}
		if n := len(w.messages); !w.lazy && n > 400 {
			t.Errorf("seed %d: the log has %d messages for %d rows", seed, n, len(w.rows))
		}
	}
	if restored < seeds/2 || resumed == 0 {
		t.Errorf("of %d lives %d began with a state from the log, and %d went on in it", lives, restored, resumed)
	}
}

func TestALogOfANewerVersionIsRefused(t *testing.T) {
	value := (&part{parts: 1}).encode()
	value[len(magic)] = version + 1
	_, err := parsePart(value)
	if want := "it was written by a newer version of exporter (form 3, this one knows 2): use that version, or give this exporter a log of its own with state.log.name"; err == nil || err.Error() != want {
		t.Errorf("have %v, want %s", err, want)
	}
}

// TestTheLagIsThatOfTheOldestChange that no reader of the log has.
func TestTheLagIsThatOfTheOldestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue()
		q.logged()
		for _, row := range []string{"A", "B"} {
			q.Record(checkpoint.Changes{}.Remove([]byte(row)))
			time.Sleep(time.Second)
		}
		if lag := q.Lag(); lag != 2*time.Second {
			t.Errorf("the lag is %s, want 2s", lag)
		}
		if q.take(false); q.Lag() != 2*time.Second {
			t.Errorf("what was taken counts for written: %s", q.Lag())
		}
		if q.logged(); q.Lag() != 0 {
			t.Errorf("the lag is %s, want none", q.Lag())
		}
	})
}

// TestI11AClaimThatCameToNothingIsNoLead: a directory is the newest as long as no other member has claimed the log
// since it was led with. Its own member's claims may have had no answer.
func TestI11AClaimThatCameToNothingIsNoLead(t *testing.T) {
	w := oneWorld(t)
	claim := w.claimOf
	ours := checkpoint.Led{Claim: claim("ours").claim.chain[:]}
	if !claim("ours").IsNewest(ours) {
		t.Error("the directory is not the newest, and nobody else has led")
	}
	for range 2 * maxEarlier / 3 {
		claim("ours")
	}
	if !claim("ours").IsNewest(ours) {
		t.Error("the directory is not the newest behind claims of its own member that came to nothing")
	}
	claim("other's")
	if claim("ours").IsNewest(ours) {
		t.Error("the directory is the newest, though another member has led")
	}
	if claim("ours").IsNewest(ours) {
		t.Error("the directory is the newest behind another member and a claim that came to nothing")
	}
	if claim("ours").IsNewest(checkpoint.Led{}) {
		t.Error("a directory that was never led with is the newest")
	}
}

// TestI11ALogThatLacksTheNewestIsNotWhole: a state whose log lacks a change does not note that the log has everything,
// even in the moment of the change.
func TestI11ALogThatLacksTheNewestIsNotWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands still
		w := oneWorld(t)
		must(t, w.begin())
		for !w.session.whole {
			must(t, w.step())
		}
		w.queue.Record(checkpoint.Changes{}.Set([]byte("A"), []byte("1")))
		if err := w.session.close(); err != nil || w.logged != nil {
			t.Errorf("the log is whole without what waits: %q, %v", w.logged, err)
		}
		must(t, w.step())
		if err := w.session.close(); err != nil || w.logged == nil {
			t.Errorf("the log is not whole: %v", err)
		}
	})
}

func FuzzPart(f *testing.F) {
	f.Add((&part{of: Identity{"a", "b", "c"}, parts: 1, contents: []byte("x")}).encode())
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := parsePart(value)
		if err == nil && p.number >= p.parts {
			t.Errorf("part %d of %d", p.number, p.parts)
		}
		var s Survey
		if err == nil {
			s.add(&p)
		}
	})
}

// must ends the test where there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
