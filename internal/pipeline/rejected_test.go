package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/deadletter"
	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// narrow is a sink with a size limit, which notes do not come near. Its log outlives it.
type narrow struct {
	memory
	mu     sync.Mutex
	limit  int      // bytes of a value
	values []string // of the log
	before func(*sink.Message) error
	after  func(*sink.Message) error
}

func (n *narrow) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	mark := n.memory.append(nil)
	for i := range batch {
		if n.before != nil {
			err := n.before(&batch[i])
			if rejected := new(sink.RejectedError); errors.As(err, &rejected) {
				rejected.Index = i
				return mark, rejected
			}
			if err != nil {
				return "", err
			}
		}
		if limit := n.max(0); len(batch[i].Value) > limit && batch[i].Op != "gap" {
			return mark, &sink.RejectedError{Index: i, Reason: "too_large", Err: fmt.Errorf("%d bytes, the limit is %d", len(batch[i].Value), limit)}
		}
		mark = n.memory.append(batch[i : i+1])
		n.mu.Lock()
		n.values = append(n.values, string(batch[i].Value))
		n.mu.Unlock()
		if n.after != nil {
			if err := n.after(&batch[i]); err != nil {
				return "", err
			}
		}
	}
	return mark, nil
}

// max is the limit, after it was set to something else than 0.
func (n *narrow) max(set int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if set != 0 {
		n.limit = set
	}
	return n.limit
}

// last is the newest value.
func (n *narrow) last() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.values[len(n.values)-1]
}

// large is an update with a body that does not fit.
func large(name string, version int) *change.Record {
	rec := update(pods(), name, version)
	rec.Object = fmt.Appendf(nil, `{"metadata":{"managedFields":[%q],"annotations":{"a":%q}},"data":%q}`,
		strings.Repeat("m", 400), strings.Repeat("a", 400), strings.Repeat("d", 4000))
	return rec
}

// post is a rig with one narrow sink that keeps dead letters.
type post struct {
	*rig
	target  *narrow
	letters *deadletter.Dir
	replays chan Replay
}

func newPost(t *testing.T) *post {
	p := &post{target: &narrow{limit: 1000}, replays: make(chan Replay)}
	p.letters = deadletter.New(deadletter.Options{Dir: filepath.Join(t.TempDir(), "bus"), Sink: "bus", Cluster: "c", ClusterUID: clusterUID})
	s := sinkOf("bus", p.target)
	s.DeadLetters = p.letters
	p.rig = newRig(t, s)
	p.config.Replays = p.replays
	return p
}

// kept are the letters as "name/version/reason".
func (p *post) kept() string {
	p.t.Helper()
	var all []string
	for l, err := range p.letters.All() {
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, l.Name+"/"+l.ResourceVersion+"/"+l.Reason)
	}
	return strings.Join(all, " ")
}

// only is the one letter that there is, whole.
func (p *post) only() *deadletter.Letter {
	p.t.Helper()
	for l, err := range p.letters.All() {
		if err != nil {
			p.t.Fatal(err)
		}
		if l, err = p.letters.Get(l.ID); err != nil {
			p.t.Fatal(err)
		}
		return l
	}
	p.t.Fatal("no letter")
	return nil
}

// replay sends the letter again and returns what became of it.
func (p *post) replay(l *deadletter.Letter, force bool) error { return p.replayed(l, force).Err }

func (p *post) replayed(l *deadletter.Letter, force bool) ReplayEnd {
	answer := make(chan ReplayEnd, 1)
	p.replays <- Replay{Letter: l.ID, Record: l.Record(clusterUID), Force: force, Answer: answer}
	return <-answer
}

func (p *post) expect(log, letters string) {
	p.t.Helper()
	if got := p.target.short(); got != log {
		p.t.Errorf("log is %q, want %q", got, log)
	}
	if got := p.kept(); got != letters {
		p.t.Errorf("letters are %q, want %q", got, letters)
	}
}

// live runs one life that must end well.
func (p *post) live(use func(line *Inlet)) {
	p.t.Helper()
	if err := p.life(use); err != nil {
		p.t.Fatal(err)
	}
}

func TestI1I4RejectedRecordIsKeptWholeBeforeItsNote(t *testing.T) {
	p := newPost(t)
	huge := large("huge", 2)
	p.target.before = func(m *sink.Message) error {
		if m.Op == "gap" && p.kept() != "huge/2/too_large" {
			t.Errorf("the note goes out, and the letters are %q", p.kept())
		}
		return nil
	}
	p.live(func(line *Inlet) {
		p.push(line, update(pods(), "a", 1), huge, update(pods(), "b", 3))
		p.drain(line, pods())
	})
	p.expect("a/1/updated huge/2/gap b/3/updated", "huge/2/too_large")
	l := p.only()
	if !bytes.Equal(l.Object, huge.Object) || !bytes.Contains(l.Value, huge.Object) || l.Event != huge.ID(clusterUID).String() {
		t.Errorf("the letter of event %s has %d bytes of the object in %d", l.Event, len(l.Object), len(l.Value))
	}
	if want := `"rejected":"too_large","deadLetter":"` + l.ID + `"}}`; !strings.HasSuffix(p.target.values[1], want) {
		t.Errorf("the note is %s, want %s at its end", p.target.values[1], want)
	}
}

var errCrash = &sink.PermanentError{Err: errors.New("crash")}

// once fails for the first message of the operation.
func once(op string) func(*sink.Message) error {
	return func(m *sink.Message) error {
		if m.Op == op {
			op = "none"
			return errCrash
		}
		return nil
	}
}

// The record comes again after a crash, and so does its rejection.
func TestI4ACrashRepeatsNeitherLetterNorNote(t *testing.T) {
	for name, arm := range map[string]func(*narrow){
		"between letter and note":    func(n *narrow) { n.before = once("gap") },
		"between note and the state": func(n *narrow) { n.after = once("gap") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			p.live(func(line *Inlet) { // the sink gets its mark
				p.push(line, update(pods(), "a", 1))
				p.drain(line, pods())
			})
			arm(p.target)
			rest := func() []*change.Record { return []*change.Record{large("huge", 2), update(pods(), "b", 3)} }
			if err := p.life(func(line *Inlet) { p.push(line, rest()...) }); !errors.Is(err, errCrash) {
				t.Fatalf("ended with %v", err)
			}
			p.live(func(line *Inlet) {
				p.push(line, rest()...)
				p.drain(line, pods())
			})
			p.expect("a/1/updated huge/2/gap b/3/updated", "huge/2/too_large")
		})
	}
}

// The same of what a resync found, which carries a version that the position has passed.
func TestI3ACrashRepeatsNoNoteOfACorrection(t *testing.T) {
	p := newPost(t)
	p.live(func(line *Inlet) {
		p.push(line, update(pods(), "huge", 2), update(pods(), "b", 9))
		p.drain(line, pods())
	})
	correction := func() *change.Record { return found(large("huge", 3), change.Replaced, change.Resync, "9") }
	p.target.after = once("gap")
	if err := p.life(func(line *Inlet) { p.push(line, correction()) }); !errors.Is(err, errCrash) {
		t.Fatalf("ended with %v", err)
	}
	p.requests = nil
	p.live(func(line *Inlet) {
		if got := p.requested(); got != "pods resync bus" {
			t.Errorf("asked for %q", got)
		}
		p.push(line, correction())
		p.drain(line, pods())
	})
	p.expect("huge/2/updated b/9/updated huge/3/gap", "huge/3/too_large")
}

// stubborn letters cannot be kept at first.
type stubborn struct {
	delivery.DeadLetters
	failures int
}

func (s *stubborn) Keep(rec *change.Record, msg *sink.Message, rejected *sink.RejectedError) (string, error) {
	if s.failures--; s.failures >= 0 {
		return "", errors.New("disk full")
	}
	return s.DeadLetters.Keep(rec, msg, rejected)
}

func TestI4ASinkWaitsForItsDeadLetter(t *testing.T) {
	p := newPost(t)
	p.config.Sinks[0].DeadLetters = &stubborn{p.letters, 2}
	var told []string
	p.config.Observer.NotKept = func(name string, err error) { told = append(told, name+": "+err.Error()) }
	p.live(func(line *Inlet) {
		p.push(line, large("huge", 2), update(pods(), "b", 3))
		p.drain(line, pods())
	})
	p.expect("huge/2/gap b/3/updated", "huge/2/too_large")
	if want := []string{"bus: disk full", "bus: disk full"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestI6ASinkGoesOnWhereItsDeadLettersHaveReachedTheirBound(t *testing.T) {
	p := newPost(t)
	p.letters.Bytes = 1
	var told []string
	p.config.Observer.Dropped = func(name string) { told = append(told, name) }
	p.live(func(line *Inlet) {
		p.push(line, large("huge", 2), update(pods(), "b", 3))
		p.drain(line, pods())
	})
	p.expect("huge/2/gap b/3/updated", "")
	if want := []string{"bus"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// cut removes a member of the text, which is how transform does it for this object.
func cut(path, from, to string) delivery.Trim {
	return delivery.Trim{Path: path, Cut: func(object []byte) ([]byte, error) {
		before, rest, found := bytes.Cut(object, []byte(from))
		_, after, ends := bytes.Cut(rest, []byte(to))
		if !found || !ends {
			return object, nil
		}
		return slices.Concat(before, after), nil
	}}
}

func TestOversizeIsTrimmedOneCutAfterTheOther(t *testing.T) {
	for limit, want := range map[int]struct{ log, letters, trimmed string }{
		6000: {log: "huge/2/updated b/3/updated"},
		5100: {log: "huge/2/updated b/3/updated", trimmed: ".managed"},
		4650: {log: "huge/2/updated b/3/updated", trimmed: ".managed,.annotations"},
		1000: {log: "huge/2/updated b/3/updated", trimmed: ".managed,.annotations,.data"},
		300:  {log: "huge/2/gap b/3/gap", letters: "huge/2/too_large b/3/too_large"},
	} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			p := newPost(t)
			p.target.limit = limit
			p.config.Sinks[0].Oversize = delivery.Oversize{Trims: []delivery.Trim{
				cut(".managed", `"managedFields":[`, `],`), cut(".nothing", "nothing", "is there"),
				cut(".annotations", `"annotations":{`, `}`), cut(".data", `,"data":"`, `"`),
			}}
			trimmed := ""
			p.config.Observer.Trimmed = func(_ string, rec *change.Record) { trimmed += rec.Remarks.Trimmed }
			huge := large("huge", 2)
			p.live(func(line *Inlet) {
				p.push(line, huge, update(pods(), "b", 3))
				p.drain(line, pods())
			})
			p.expect(want.log, want.letters)
			if trimmed != want.trimmed || want.trimmed != "" && !strings.Contains(p.target.values[0], `"trimmed":"`+want.trimmed+`"`) {
				t.Errorf("trimmed %q, want %q, in %.600s", trimmed, want.trimmed, p.target.values[0])
			}
			if want.letters != "" && !bytes.Equal(p.only().Object, huge.Object) {
				t.Error("the letter does not have the whole object")
			}
		})
	}
}

// TestI4WhatDoesNotFitWithItsBeforeGoesWithout, whatever oversize says, and the letter keeps both.
func TestI4WhatDoesNotFitWithItsBeforeGoesWithout(t *testing.T) {
	for limit, want := range map[int]struct{ log, letters, left string }{
		9000: {log: "huge/2/updated"},
		6000: {log: "huge/2/updated", left: "before"},
		5000: {log: "huge/2/updated", left: "before,.data"},
		300:  {log: "huge/2/gap", letters: "huge/2/too_large"},
	} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			p := newPost(t)
			p.target.limit = limit
			p.config.Sinks[0].Oversize = delivery.Oversize{Trims: []delivery.Trim{cut(".data", `,"data":"`, `"`)}}
			left := ""
			p.config.Observer.Trimmed = func(_ string, rec *change.Record) { left += rec.Remarks.LeftOut() }
			huge := large("huge", 2)
			huge.Before = fmt.Appendf(nil, `{"data":%q}`, strings.Repeat("b", 2000))
			p.live(func(line *Inlet) {
				p.push(line, huge)
				p.drain(line, pods())
			})
			p.expect(want.log, want.letters)
			if marked := strings.Contains(p.target.values[0], `"beforeomitted":true`); left != want.left || marked != (left != "") {
				t.Errorf("left out %q, want %q, marked %t", left, want.left, marked)
			}
			if want.letters != "" && !bytes.Equal(p.only().Before, huge.Before) {
				t.Error("the letter does not have the object before")
			}
		})
	}
}

// TestI4AReplaySaysWhatItLeftOut, and leaves nothing out that fits.
func TestI4AReplaySaysWhatItLeftOut(t *testing.T) {
	for limit, want := range map[int]string{9000: "", 6000: "before"} {
		p := newPost(t)
		huge := large("huge", 2)
		huge.Before = fmt.Appendf(nil, `{"data":%q}`, strings.Repeat("b", 2000))
		p.live(func(line *Inlet) {
			p.push(line, huge)
			p.drain(line, pods())
			p.target.max(limit)
			if end := p.replayed(p.only(), false); end.Err != nil || end.LeftOut != want {
				t.Errorf("below %d bytes it went without %q, want %q: %v", limit, end.LeftOut, want, end.Err)
			}
			if has := strings.Contains(p.target.last(), `"before":`); has != (want == "") {
				t.Errorf("below %d bytes the event has its before: %t", limit, has)
			}
		})
	}
}

func TestOversizeIsRefused(t *testing.T) {
	p := newPost(t)
	p.config.Sinks[0].Oversize.Reject = true
	err := p.life(func(line *Inlet) { p.push(line, large("huge", 2)) })
	const want = "pods n/huge, uid uid-huge, resourceVersion 2, an object of 4868 bytes, is too large for the sink: "
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "the limit is 1000, or give sink bus oversize: deadletter or oversize: trim") {
		t.Errorf("ended with %v", err)
	}
	p.expect("", "")
}

// TestI4WhatCannotBeReadIsANote: of it there is nothing to keep, and it is told where it happened.
func TestI4WhatCannotBeReadIsANote(t *testing.T) {
	p := newPost(t)
	unread := update(pods(), "odd", 2)
	unread.Object, unread.Withheld = nil, change.Unreadable
	p.live(func(line *Inlet) {
		p.push(line, update(pods(), "a", 1), unread, update(pods(), "b", 3))
		p.drain(line, pods())
	})
	p.expect("a/1/updated odd/2/gap b/3/updated", "")
	if want := `"rejected":"unreadable"}}`; !strings.HasSuffix(p.target.values[1], want) {
		t.Errorf("the note is %s, want %s at its end", p.target.values[1], want)
	}
}

// A topic that a label has chosen may take nothing, not even the note: the letter is kept, and the next records go on.
func TestI4ANoteWithoutAPlaceIsLeftOut(t *testing.T) {
	p := newPost(t)
	nowhere := func(m *sink.Message) error {
		if strings.Contains(string(m.Key)+m.ID, "nowhere") {
			return &sink.RejectedError{Reason: "topic", Err: errors.New("no such topic"), NoPlace: true}
		}
		return nil
	}
	p.target.before = nowhere
	p.live(func(line *Inlet) {
		p.push(line, update(pods(), "a", 1), update(pods(), "nowhere", 2), update(pods(), "b", 3))
		p.drain(line, pods())
	})
	p.expect("a/1/updated b/3/updated", "nowhere/2/topic")
}

// TestI4ADeleteGoesWithoutItsLastState, whatever oversize says and whatever is wrong with that: else consumers would
// have the object for ever.
func TestI4ADeleteGoesWithoutItsLastState(t *testing.T) {
	for name, refuse := range map[string]func(*post){
		"too large": func(*post) {},
		"too large for a sink that would stop": func(p *post) {
			p.config.Sinks[0].Oversize.Reject = true
		},
		"not to be encoded": func(p *post) {
			p.target.limit = 1 << 20
			p.target.before = func(m *sink.Message) error {
				if bytes.Contains(m.Value, []byte("ddd")) {
					return &sink.RejectedError{Reason: "invalid", Err: errors.New("ddd")}
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPost(t)
			refuse(p)
			left := ""
			p.config.Observer.Trimmed = func(_ string, rec *change.Record) { left += rec.Remarks.LeftOut() }
			gone := large("huge", 3)
			gone.Op, gone.Before = change.Deleted, large("huge", 2).Object
			p.live(func(line *Inlet) {
				p.push(line, update(pods(), "huge", 1), gone, update(pods(), "b", 4))
				p.drain(line, pods())
			})
			p.expect("huge/1/updated huge/3/deleted b/4/updated", "")
			if left != "before" || !strings.Contains(p.target.values[1], `"beforeomitted":true`) {
				t.Errorf("left out is %q, of %s", left, p.target.values[1])
			}
		})
	}
}

// TestI4ADeleteThatNeverGoesIsKeptWhole.
func TestI4ADeleteThatNeverGoesIsKeptWhole(t *testing.T) {
	p := newPost(t)
	p.target.limit = 10
	gone := large("huge", 3)
	gone.Op = change.Deleted
	p.live(func(line *Inlet) {
		p.push(line, gone)
		p.drain(line, pods())
	})
	p.expect("huge/3/gap", "huge/3/too_large")
	if l := p.only(); !bytes.Equal(l.Object, gone.Object) || !bytes.Contains(l.Value, gone.Object) {
		t.Errorf("the letter has %d bytes of the object", len(l.Object))
	}
}

// TestI4ANoteHasATimeOfItsOwn: where that of the record is why it was refused, the note goes out all the same.
func TestI4ANoteHasATimeOfItsOwn(t *testing.T) {
	p := newPost(t)
	p.target.before = func(m *sink.Message) error {
		if time.Since(m.Time) > time.Hour {
			return &sink.RejectedError{Reason: "invalid", Err: errors.New("INVALID_TIMESTAMP")}
		}
		return nil
	}
	old, gap := update(pods(), "a", 1), update(pods(), "", 2)
	gap.Op, gap.Key, gap.UID, gap.Object = change.Gap, change.Key{}, "", nil
	gap.Snapshot = &change.Snapshot{ID: "2.1", Reason: change.Gone, ResourceVersion: "2"}
	old.Received = time.Now().Add(-2 * time.Hour)
	gap.Received = old.Received
	p.live(func(line *Inlet) {
		p.push(line, old, gap, update(pods(), "b", 3))
		p.drain(line, pods())
	})
	p.expect("a/1/gap /2/gap b/3/updated", "a/1/invalid")
}

// TestI4TheLetterOfWhatIsDeliveredGoes: the limit is raised, and a snapshot tells the state again, or the record comes
// again after a crash before its note. Whoever then sent the letters would tell it twice.
func TestI4TheLetterOfWhatIsDeliveredGoes(t *testing.T) {
	p := newPost(t)
	p.target.before = once("gap")
	if err := p.life(func(line *Inlet) { p.push(line, large("huge", 2)) }); !errors.Is(err, errCrash) {
		t.Fatalf("ended with %v", err)
	}
	p.expect("", "huge/2/too_large")
	p.target.before = nil
	p.live(func(line *Inlet) {
		p.push(line, update(pods(), "a", 1), large("wide", 3))
		p.drain(line, pods())
	})
	p.expect("a/1/updated wide/3/gap", "huge/2/too_large wide/3/too_large")
	var told []string
	p.config.Observer.Replayed = func(_ string, rec *change.Record, err error) {
		told = append(told, fmt.Sprintf("%s %t %v", rec.Key.Name, rec.Replay.Letter != "", err))
	}
	p.target.max(1 << 20)
	p.live(func(line *Inlet) {
		p.push(line, large("huge", 2), found(large("wide", 3), change.Sync, change.Requested, "9"))
		p.drain(line, pods())
	})
	p.expect("a/1/updated wide/3/gap huge/2/updated wide/3/sync", "")
	if want := []string{"huge true <nil>", "wide true <nil>"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
