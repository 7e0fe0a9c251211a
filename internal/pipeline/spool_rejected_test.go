package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/delivery"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// newSpoolingPost is a post whose sink spools, and takes nothing until the returned function is called.
func newSpoolingPost(t *testing.T) (p *post, release func()) {
	p = newPost(t)
	p.config.Sinks[0].Queue, p.config.Sinks[0].Spool = fifo.Limit{Bytes: 1 << 20, Records: 4}, 1<<20
	open := make(chan struct{})
	p.target.before = func(*sink.Message) error { <-open; return nil }
	return p, func() { close(open) }
}

// What comes from disk has no numbers: the cuts of one record are not those of the next, also where the sink fails
// between them.
func TestI4WhatIsRejectedFromDiskIsTrimmedEachByItself(t *testing.T) {
	p, release := newSpoolingPost(t)
	p.config.Sinks[0].Oversize.Trims = []delivery.Trim{{Path: ".data", Cut: func([]byte) ([]byte, error) { return []byte("{}"), nil }}}
	var want []string
	p.live(func(line *Inlet) {
		for i := 1; i <= 12; i++ {
			p.push(line, large(fmt.Sprintf("huge%d", i), i))
			want = append(want, fmt.Sprintf("huge%d/%d/updated", i, i))
		}
		p.drain(line, pods()) // to disk
		p.target.after = failing(once("updated"))
		release()
		p.await("the last", func() bool { return strings.HasSuffix(p.target.short(), want[11]) })
	})
	p.expect(strings.Join(want, " "), "")
}

func TestI4WhatIsRejectedFromDiskIsKept(t *testing.T) {
	p, release := newSpoolingPost(t)
	p.live(func(line *Inlet) {
		for i := 1; i <= 12; i++ {
			p.push(line, large("huge", i))
		}
		p.drain(line, pods())
		release()
		p.await("the last note", func() bool { return strings.HasSuffix(p.target.short(), "huge/12/gap") })
	})
	if letters := strings.Fields(p.kept()); len(letters) != 12 || !strings.Contains(p.target.last(), p.lastLetter()) {
		t.Errorf("the letters are %v, the last note %s", letters, p.target.last())
	}
}

// The process dies when the first note is written: neither it nor its letter is written again.
func TestI3ANoteOfWhatIsOnDiskIsWrittenOnce(t *testing.T) {
	p, release := newSpoolingPost(t)
	if err := p.life(func(line *Inlet) {
		for i := 1; i <= 12; i++ {
			p.push(line, large("huge", i))
		}
		p.drain(line, pods())
		p.target.after = once("gap")
		release()
	}); err == nil {
		t.Fatal("the life did not die")
	}
	p.target.before, p.target.after = nil, nil
	p.live(func(line *Inlet) {
		p.await("the last note", func() bool { return strings.HasSuffix(p.target.short(), "huge/12/gap") })
	})
	notes := strings.Fields(p.target.short())
	if len(notes) != 12 || len(slices.Compact(notes)) != 12 {
		t.Errorf("the log is %v", notes)
	}
}

func TestAReplayIsNeverSpooled(t *testing.T) {
	p := newPost(t)
	p.config.Sinks[0].Queue, p.config.Sinks[0].Spool = fifo.Limit{Bytes: 1 << 20, Records: 4}, 1<<20
	p.live(func(line *Inlet) {
		p.reject(line)
		p.target.max(1 << 20)
		entered, open := make(chan struct{}), make(chan struct{})
		p.target.before = func(m *sink.Message) error {
			if strings.Contains(m.ID, "/a/") {
				entered <- struct{}{}
				<-open
				p.target.before = nil
			}
			return nil
		}
		p.push(line, update(pods(), "a", 3))
		<-entered
		for i := 4; i <= 20; i++ {
			p.push(line, update(pods(), "a", i))
		}
		err := p.replay(p.only(), false)
		if err == nil || !strings.Contains(err.Error(), "goes to disk") {
			t.Errorf("got %v", err)
		}
		p.drain(line, pods())
		if p.position(pods()) != "20" || p.kept() != "huge/2/too_large" {
			t.Errorf("the position is %s, the letters are %s", p.position(pods()), p.kept())
		}
		close(open)
		p.await("the last", func() bool { return strings.HasSuffix(p.target.short(), "a/20/updated") })
		p.await("an empty spool", func() bool { return p.replay(p.only(), false) == nil })
	})
	p.expect("huge/2/gap "+numbers(3, 20)+" huge/2/updated", "")
}

func TestAReplayIsNeverCoalesced(t *testing.T) {
	p := newPost(t)
	p.config.Sinks[0].Coalesce = true
	p.live(func(line *Inlet) {
		p.reject(line)
		p.target.max(1 << 20)
		entered, open := make(chan struct{}), make(chan struct{})
		p.target.before = func(m *sink.Message) error {
			p.target.before = nil
			close(entered)
			<-open
			return nil
		}
		p.push(line, update(pods(), "a", 3))
		<-entered
		answer := make(chan ReplayEnd, 1)
		p.replays <- Replay{Letter: p.only().ID, Record: p.only().Record(clusterUID), Force: true, Answer: answer}
		p.await("the replay in line", func() bool { return line.line.Behind(pods()) == 2 })
		p.push(line, update(pods(), "huge", 4))
		p.push(line, update(pods(), "huge", 5))
		close(open)
		if end := <-answer; end.Err != nil {
			t.Error(end.Err)
		}
		p.drain(line, pods())
	})
	p.expect("huge/2/gap a/3/updated huge/2/updated huge/5/updated", "")
}

// lastLetter is the id of the newest letter.
func (p *post) lastLetter() (id string) {
	p.t.Helper()
	for l, err := range p.letters.All() {
		if err != nil {
			p.t.Fatal(err)
		}
		id = l.ID
	}
	return id
}
