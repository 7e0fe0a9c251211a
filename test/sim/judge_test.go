package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// judge knows what must be true, and reads the sinks' logs in the end. It shares no code with the line but the values
// of package change.
type judge struct {
	world *world
	// marks are by sink what the state is known to have.
	marks map[string]sink.Mark
	// joined is by sink the number of its log's records when it last became new.
	joined map[string]int
	// given is by sink and resource how far the saved state says that it was given everything, and told.
	given map[string]map[string]given
}

// given is how far a sink was given a resource, as the state says.
type given struct{ at, told, here string }

func newJudge(w *world) *judge {
	return &judge{world: w, marks: map[string]sink.Mark{}, joined: map[string]int{}, given: map[string]map[string]given{}}
}

func (j *judge) sourceObserver(l *life) source.Observer {
	o := source.NopObserver()
	o.Failed = func(stream change.Stream, err error) { l.note("fail", stream.String()+": "+err.Error()) }
	o.Watching = func(stream change.Stream, from string) { l.note("watch", stream.String()+" from "+from) }
	o.Comparing = func(stream change.Stream, snapshot *change.Snapshot) {
		l.note("begin", fmt.Sprintf("%s %s %s behind %s for %v", stream.String(), snapshot.ID, snapshot.Reason, snapshot.From, snapshot.Sinks))
	}
	return o
}

func (j *judge) pipelineObserver(l *life) pipeline.Observer {
	o := pipeline.NopObserver()
	o.Committed = func(time.Duration) {
		states := j.saved(l.store)
		j.world.mu.Lock()
		defer j.world.mu.Unlock()
		if !l.dead && l.isLeader() {
			j.read(l, states)
		}
	}
	o.Queued = func(name string, backlog fifo.Levels) {
		if most := 2*l.roomOf(name) + 60; backlog.Records > most {
			j.world.violate("I6", "sink %s holds %d records, %d are allowed in its queue", name, backlog.Records, most)
		}
	}
	o.Failed = func(name string, err error) { l.note("fail", "sink "+name+": "+err.Error()) }
	o.Stopped = func(name string, err error) {
		l.note("fail", "sink "+name+" is stopped: "+err.Error())
		if sink.IsFenced(err) {
			l.shutOut()
		}
	}
	o.CommitFailed = func(err error) { l.note("fail", "commit: "+err.Error()) }
	return o
}

// roomOf is how many records the sink may hold.
func (l *life) roomOf(name string) int {
	for _, spec := range l.world.script.Sinks {
		if spec.Name == name {
			return spec.Queue
		}
	}
	return 0
}

// saved is what the state has of a sink.
type saved struct {
	*checkpoint.SinkState
	rows map[string][]checkpoint.SinkObject // by resource
	err  error
}

// saved reads what the state has of each sink. The caller does not hold the lock: the database may wait for its disk,
// which takes it.
func (j *judge) saved(store *checkpoint.Store) map[string]saved {
	states := map[string]saved{}
	for _, spec := range j.world.script.Sinks {
		s := saved{rows: map[string][]checkpoint.SinkObject{}}
		s.SinkState, s.err = store.LoadSink(spec.Name)
		for _, resource := range []string{pods, events} {
			if s.err != nil || s.Mark == "" {
				continue
			}
			for row, err := range s.Objects(resource, checkpoint.Others, "") {
				s.rows[resource], s.err = append(s.rows[resource], row), errors.Join(s.err, err)
			}
		}
		states[spec.Name] = s
	}
	return states
}

// read notes what the state has. The caller holds the lock.
func (j *judge) read(l *life, states map[string]saved) {
	var text []string
	for _, spec := range j.world.script.Sinks {
		state := states[spec.Name]
		if state.err != nil {
			j.world.violateLocked("I5", "the state of sink %s cannot be read: %v", spec.Name, state.err)
			return
		}
		if state.Mark != "" {
			j.marks[spec.Name] = sink.Mark(state.Mark)
			j.fold(spec.Name, state)
		}
		known := map[string]given{}
		for resource, places := range state.Places {
			for namespace, place := range places {
				text = append(text, fmt.Sprintf("%s %s/%s at %s", spec.Name, namespace, resource, place.At.Version))
				if c := place.Comparison; c.UnderWay() {
					text[len(text)-1] += " compared " + c.ID
				}
				was, is := known[resource]
				now := given{place.At.Version, newer(place.At.Version, place.High.Version), place.At.Version}
				if place.High.History == place.At.History {
					now.here = now.told
				}
				if is && change.CompareVersions(was.at, now.at) < 0 {
					now.at = was.at
				}
				now.told, now.here = newer(now.told, was.told), newer(now.here, was.here)
				known[resource] = now
			}
		}
		j.given[spec.Name] = known
	}
	l.noteLocked("saved", fmt.Sprintf("%s, marks %v", strings.Join(text, ", "), j.marks))
}

// fold compares the rows of a sink with the fold of its own log: they have nothing that the log has not (I1), and all
// that it has as far as the mark (I5). Versions of several histories do not compare, a log may lose what it had, and of
// updates that do not matter no log tells. The caller holds the lock.
func (j *judge) fold(name string, state saved) {
	w := j.world
	g := w.logs[name]
	behind, err := g.behind(sink.Mark(state.Mark))
	if err != nil || w.script.Half || w.script.Without != "" || len(g.lostIDs) > 0 || len(w.server.etcd.undone) > 0 {
		return
	}
	type told struct {
		uid, op string
		rev     int
	}
	last, has, ended := map[string]told{}, map[string]bool{}, map[string]int{}
	for _, m := range g.all() {
		id := strings.Split(m.id, "/")
		if m.seq <= j.joined[name] || id[3] == "" {
			continue
		}
		key, rev := strings.Join(id[1:4], "/"), number(id[5])
		if m.op == "deleted" {
			ended[key] = max(ended[key], rev)
		} else {
			has[key+"/"+id[4]+"/"+id[5]] = true
		}
		if !slices.Contains(behind, m.id) {
			last[key] = told{id[4], m.op, rev}
		}
	}
	for _, resource := range []string{pods, events} {
		for _, row := range state.rows[resource] {
			key := resource + "/" + row.Of.Key.String()
			if !has[key+"/"+row.UID+"/"+row.At.Version] {
				w.violateLocked("I1", "the state of sink %s has %s %s at %s, and its log has not", name, key, row.UID, row.At.Version)
			}
			if was := last[key]; number(row.At.Version) < was.rev {
				w.violateLocked("I5", "the state of sink %s has %s at %s, and its log %v", name, key, row.At.Version, was)
			}
			delete(last, key)
		}
	}
	for key, was := range last {
		if was.op != "deleted" && was.op != "gap" && ended[key] < was.rev {
			w.violateLocked("I5", "the state of sink %s lacks %s, and its log has %v", name, key, was)
		}
	}
}

func number(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}

func newer(a, b string) string {
	if change.CompareVersions(a, b) > 0 {
		return a
	}
	return b
}

// opened notes that the life has opened the state.
func (j *judge) opened(l *life, store *checkpoint.Store) {
	states := j.saved(store)
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	if l.dead {
		return
	}
	l.store, l.opened = store, true
	if l.isLeader() {
		clear(j.marks)
		j.read(l, states)
	}
	for _, spec := range j.world.script.Sinks {
		if j.marks[spec.Name] == "" && l.has(spec.Name) {
			j.joins(j.world.logs[spec.Name])
		}
	}
	l.noteComplete(false)
	l.noteLocked("open", fmt.Sprintf("marks %v, configured is %v", j.marks, l.spec.streams()))
}

// afterLife judges how a life ended: an orderly stop leaves nothing behind, or says what (I7).
func (j *judge) afterLife(l *life) {
	w := j.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.crashed {
		return
	}
	var left *pipeline.UndeliveredError
	var full *disk.FullError
	switch {
	case l.late(), l.fenced, errors.As(l.err, &left), errors.As(l.err, &full) && l.wasFull, errors.Is(l.err, errBroken):
	case l.err != nil:
		w.violateLocked("I7", "life %d ends with %v", l.number, l.err)
	}
}

// upToDate says whether the state knows the newest of what the sinks have. An etcd that is restored to what the state
// knows, while a sink's log is ahead of it, is not noticed: the log alone was in the future.
func (j *judge) upToDate(l *life) bool {
	for _, ev := range j.world.server.etcd.history {
		if change.CompareVersions(strconv.Itoa(ev.rev), j.toldOf(l, ev.resource)) > 0 {
			return false // it may be on its way
		}
	}
	for _, g := range j.world.logs {
		for _, m := range g.all() {
			part := strings.Split(m.id, "/")
			if change.CompareVersions(part[5], j.toldOf(l, part[1])) > 0 {
				return false
			}
		}
	}
	return true
}

// known is the revision that the state knows of every stream. Once a restored etcd has overtaken that, some stream
// does not notice.
func (j *judge) known(l *life) int {
	least := math.MaxInt
	for _, stream := range []string{pods, events} {
		at, _ := strconv.Atoi(j.toldOf(l, stream)) // 0 where there is none
		least = min(least, at)
	}
	return least
}

// positionOf is how far every configured sink was given the stream, "" where one was given nothing.
func (j *judge) positionOf(l *life, stream string) string {
	return j.least(l, stream, func(g given) string { return g.at })
}

// toldOf is up to where every configured sink was told something of the stream.
func (j *judge) toldOf(l *life, stream string) string {
	return j.least(l, stream, func(g given) string { return g.told })
}

// hereOf is toldOf in the history of the sinks' positions. A restored etcd that overtakes it before that is saved is
// not noticed.
func (j *judge) hereOf(l *life, stream string) string {
	return j.least(l, stream, func(g given) string { return g.here })
}

func (j *judge) least(l *life, stream string, of func(given) string) (least string) {
	resource := stream[strings.LastIndex(stream, "/")+1:]
	first := true
	for _, spec := range j.world.script.Sinks {
		if !l.has(spec.Name) || !spec.takes(resource) {
			continue
		}
		at := of(j.given[spec.Name][resource])
		if first || change.CompareVersions(at, least) < 0 {
			least, first = at, false
		}
	}
	return least
}
