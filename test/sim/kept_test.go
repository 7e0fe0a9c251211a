package sim

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// keptState is what was saved at some instant, and what the judge knew of it.
type keptState struct {
	disk  *vfs.MemFS
	given map[string]map[string]given
	marks map[string]sink.Mark
	at    map[string]string // the position of each stream
}

// keep puts a copy of what is saved aside, as a log of the state has it that lags behind, unless there is one. What
// begins does not lag: it is done when every stream has its first position, also in another timeline, and every sink
// its first mark. The caller holds the lock.
func (w *world) keep(l *life) {
	if w.kept != nil || !l.begun() {
		return
	}
	k := &keptState{
		disk: l.fs.CrashClone(vfs.CrashCloneCfg{}), given: maps.Clone(w.judge.given), marks: maps.Clone(w.judge.marks), at: map[string]string{},
	}
	for _, stream := range l.spec.streams() {
		k.at[stream.String()] = w.judge.positionOf(l, stream.String())
	}
	k.disk.TestingSetDiskUsage(room())
	w.kept = k
	l.noteLocked("kept", "what is saved is put aside")
}

// begun says whether the state knows all streams and sinks of the life. The caller holds the lock.
func (l *life) begun() bool {
	j := l.world.judge
	return l.opened && len(l.world.server.hold) == 0 && !slices.ContainsFunc(l.spec.streams(), func(s change.Stream) bool { return j.positionOf(l, s.String()) == "" }) &&
		!slices.ContainsFunc(l.world.script.Sinks, func(k sinkSpec) bool { return l.has(k.Name) && !l.world.logs[k.Name].hasAll(j.marks[k.Name]) })
}

// hasAll says whether the mark is one, and the log has lost nothing before it.
func (g *sinkLog) hasAll(mark sink.Mark) bool {
	_, err := g.behind(mark)
	return err == nil
}

// putBack makes the state what was put aside: the sinks' logs, and the cluster, are further on (I11). It is not one
// from before a sink that the lives since had more.
func (w *world) putBack() {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kept
	if w.kept = nil; k == nil || w.server.lostSince(k.at) || w.hasBegunSince(k.marks) {
		return
	}
	w.disks[0], w.judge.given, w.judge.marks = k.disk, k.given, k.marks
	for _, resource := range []string{pods, events} {
		w.server.shown[resource] = w.server.etcd.rev // the server loses nothing of what was before either
	}
	w.life.noteLocked("back", "the state is what was put aside")
}

// hasBegunSince says whether a sink that these marks do not know has written, or is about to.
func (w *world) hasBegunSince(marks map[string]sink.Mark) bool {
	for name, g := range w.logs {
		if marks[name] == "" && g.arrived+len(g.last.batch) > 0 {
			return true
		}
	}
	return false
}

// joins notes that the sink is new: what its log has, and what is on the way to it, is of before.
func (j *judge) joins(g *sinkLog) { j.joined[g.name], g.last.foreign = g.arrived, true }

// lostSince says whether the server has lost an event after the positions. What a full snapshot found of it comes from
// the watch again, as far as an older state knows.
func (s *apiServer) lostSince(positions map[string]string) bool {
	for stream, position := range positions {
		at, _ := strconv.Atoi(position)
		for rev := range s.lost[stream[strings.LastIndex(stream, "/")+1:]] {
			if rev > at {
				return true
			}
		}
	}
	return false
}

// putBack makes the state of a life one from before: from the first instant of some lives at which everything has
// begun. In some such lives enough happens after that. It chooses by a source of its own.
func (g generator) putBack(s *script) {
	back := 1 + g.IntN(len(s.Lives)-1)
	first := g.IntN(back)
	for kept := first; kept < back; kept++ {
		s.Lives[kept].Keep = 1 + g.IntN(80)
	}
	s.Lives[back].Back = true
	if l := &s.Lives[first]; g.chance(60) {
		l.Keep, l.End, l.At = 1, "now", 0
		l.Actions = slices.Concat(l.Actions, []action{{Do: "settle"}}, g.forgotten(s.Sinks, l))
	}
}

// forgotten is what the state does not know when it is put back: a sink leaves and returns, or a stream is compared
// though the server remembers everything.
func (g generator) forgotten(sinks []sinkSpec, l *lifeSpec) (all []action) {
	for _, k := range sinks {
		if k.Full == "block" && k.Queue < 10 && len(l.Sinks) > 1 && strings.Contains(l.Sinks, k.Name) && g.chance(60) {
			all = []action{{Do: "broken", Key: k.Name, N: pick(g, 70_000, 200_000)}}
		}
	}
	if len(all) == 0 {
		all = []action{{Do: "empty", N: 12}}
	}
	for range 2 + g.IntN(10) {
		key, pause := pick(g, keys()[:2]...), pick(g, 0, 1, 8)
		all = append(all, action{Do: pick(g, "put", "put", "delete"), Resource: pick(g, pods, pods, pods, events), Key: key, N: pause})
	}
	return append(all, action{Do: "sleep", N: 700_000}, action{Do: "settle"})
}
