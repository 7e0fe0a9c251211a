package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/kubecdc/kubecdc/internal/app/cluster"
	"github.com/kubecdc/kubecdc/internal/app/task"
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/listener"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/selection"
)

// memberUID is that of the cluster of all members.
const memberUID = "0a1b2c3d-0000"

// kinds are the streams of a member.
func kinds() []change.Stream {
	return []change.Stream{neighbourStream, {Resource: change.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}}}
}

// chronicle is what happens in the cluster, by kind, for as long as anybody asks: two objects change in turns, and each
// fourth time the object is deleted, and made again with another uid.
func chronicle(kind, length int) (records []*change.Record) {
	stream := kinds()[kind]
	lives := [2]int{}
	for i := range length {
		object, turn := i%2, i/2%4
		version := strconv.Itoa(i + 1)
		op := []change.Op{change.Added, change.Updated, change.Updated, change.Deleted}[turn]
		if turn == 0 {
			lives[object]++
		}
		name := fmt.Sprintf("%c%d", stream.Resource.Name[0], object)
		records = append(records, &change.Record{
			Stream: &stream, Op: op, Key: change.Key{Namespace: "shop", Name: name}, UID: fmt.Sprintf("%s-%d", name, lives[object]),
			ResourceVersion: version,
			Object:          fmt.Appendf(nil, `{"kind":%q,"metadata":{"name":%q,"namespace":"shop","resourceVersion":%q}}`, stream.Resource.Kind, name, version),
			Received:        time.Now(), Position: change.Position{ResourceVersion: version, Complete: true},
		})
	}
	return records
}

// member is one of several exporters of one task: the real line with a real sink, and sources that show it what the
// test says. Each life that ends since a sink was opened too early is followed by another one.
type member struct {
	t     *testing.T
	stage stage
	began chan chan<- struct{} // a life has opened its sinks; its sources wait until what comes is closed
	ended chan error           // holds the end of the last life
	stop  context.CancelFunc

	late int    // lives that ended so
	anew func() // is called when another life has opened its sinks, and waits; nil is nothing

	mu        sync.Mutex
	shown     [2]int // how many records of each kind the API server has shown it
	delivered [2]int // how many of them are delivered and saved
	changed   chan struct{}
}

func startMember(t *testing.T, dir, sinks string) *member {
	c := &cluster.Cluster{Name: "prod", UID: memberUID}
	choice := new(selection.Choice)
	for _, kind := range kinds() {
		choice.Streams = append(choice.Streams, selection.Selected{Stream: kind, Names: []string{kind.Resource.Name}})
	}
	c.Chosen.Store(choice)
	m := &member{
		t: t, stage: stage{cluster: c, dir: dir, sinks: sinks}, began: make(chan chan<- struct{}), ended: make(chan error, 1),
		changed: make(chan struct{}),
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	m.stop = cancel
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.ended <- m.live(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return m
}

func (m *member) live(ctx context.Context) error {
	for {
		err := runLine(ctx, m.stage, m.lifeOf)
		if !listener.IsLate(err) {
			return err
		}
	}
}

// lifeOf are the sources of one life.
func (m *member) lifeOf(store *checkpoint.Store) pipeline.Config {
	gate := make(chan struct{})
	announce := sync.OnceFunc(func() {
		select {
		case m.began <- gate:
		case <-m.t.Context().Done():
		}
	})
	p := pipeline.Config{StopTimeout: time.Minute, Observer: pipeline.NopObserver()}
	for kind, stream := range kinds() {
		run := func(ctx context.Context, line *pipeline.Inlet) error {
			go announce()
			select {
			case <-gate:
				return task.IgnoreStop(ctx, m.watch(ctx, kind, store, line))
			case <-ctx.Done():
				return nil
			}
		}
		p.Sources = append(p.Sources, pipeline.Source{Stream: stream, Run: run, Request: func(...change.Owed) {}})
	}
	return p
}

// watch pushes what the API server shows after the saved position.
func (m *member) watch(ctx context.Context, kind int, store *checkpoint.Store, line *pipeline.Inlet) error {
	stream := kinds()[kind]
	position, _, err := store.Position(stream.String())
	if err != nil {
		return err
	}
	at, _ := strconv.Atoi(position.ResourceVersion)
	for {
		m.mu.Lock()
		shown, changed := m.shown[kind], m.changed
		m.mu.Unlock()
		for _, rec := range chronicle(kind, shown)[min(at, shown):] {
			if err := line.Push(ctx, rec); err != nil {
				return err
			}
		}
		at = max(at, shown)
		if err := line.Drain(ctx, stream); err != nil {
			return err
		}
		m.note(func() { m.delivered[kind] = max(m.delivered[kind], shown) })
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// note changes what is known of the member, and wakes who waits for a change of that.
func (m *member) note(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	shown, delivered := m.shown, m.delivered
	if change(); shown != m.shown || delivered != m.delivered {
		close(m.changed)
		m.changed = make(chan struct{})
	}
}

// begin lets the first life go on when its sinks are open.
func (m *member) begin() {
	m.t.Helper()
	select {
	case gate := <-m.began:
		close(gate)
	case err := <-m.ended:
		m.t.Fatalf("the member ended before its sinks were open: %v", err)
	}
}

// show shows so many records of each kind, if it has not seen more.
func (m *member) show(records [2]int) {
	m.note(func() {
		for kind, n := range records {
			m.shown[kind] = max(m.shown[kind], n)
		}
	})
}

// tell shows one more record of each of the kinds, one after the other, and returns when all are delivered. told is
// what was shown.
func (m *member) tell(told *[2]int, kinds ...int) {
	m.t.Helper()
	for _, kind := range kinds {
		told[kind]++
		m.show(*told)
		m.await()
	}
}

// await returns when everything that was shown is delivered and saved. A new life goes on by itself.
func (m *member) await() {
	m.t.Helper()
	for {
		m.mu.Lock()
		whole, changed := m.shown == m.delivered, m.changed
		m.mu.Unlock()
		if whole {
			return
		}
		select {
		case gate := <-m.began:
			if m.late++; m.anew != nil {
				m.anew()
			}
			close(gate)
		case <-changed:
		case err := <-m.ended:
			m.t.Fatalf("the member ended: %v", err)
		}
	}
}

// awaitFenced returns when another exporter has fenced the member.
func (m *member) awaitFenced() {
	m.t.Helper()
	if err := <-m.ended; !isFenced(err) {
		m.t.Fatalf("the member ended with %v, and should have been fenced", err)
	}
	m.ended <- errors.New("it was fenced")
}

// quit ends the member as one that is asked to.
func (m *member) quit() {
	m.t.Helper()
	m.stop()
	if err := <-m.ended; err != nil {
		m.t.Fatalf("the member ended with %v", err)
	}
	m.ended <- nil
}

// orderOf is the ids of what is told of objects, by kind and name.
func orderOf(ids []change.ID) map[string][]string {
	order := map[string][]string{}
	for _, id := range ids {
		if id.Op.OfObject() {
			object := id.Resource + "/" + id.Key.Name
			order[object] = append(order[object], fmt.Sprintf("%s of %s at %s", id.Op, id.UID, id.ResourceVersion))
		}
	}
	return order
}

// whole is what is to be told of what the members were shown.
func whole(shown [2]int) map[string][]string {
	var ids []change.ID
	for kind, length := range shown {
		for _, rec := range chronicle(kind, length) {
			ids = append(ids, rec.ID(memberUID))
		}
	}
	return orderOf(ids)
}

// wantTold fails where an object's changes are not told once and in order.
func wantTold(t *testing.T, ids []change.ID, want map[string][]string) {
	t.Helper()
	have := orderOf(ids)
	for _, object := range slices.Sorted(maps.Keys(want)) {
		if !slices.Equal(have[object], want[object]) {
			t.Errorf("of %s is told\n%q, want\n%q", object, have[object], want[object])
		}
	}
	if len(have) != len(want) {
		t.Errorf("%d objects are told of, want %d", len(have), len(want))
	}
}
