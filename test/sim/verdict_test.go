package sim

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// told is one record of a sink's log, read back from its message alone.
type told struct {
	id, op, cluster, resource, key, uid string
	namespace                           string // of the object, or of the stream
	rev, order                          int
	snapshot, reason                    string
	unseen                              bool   // a delete that no watch saw
	bare                                bool   // a delete without its last state, which the log rejects
	data                                string // "" is none
	from                                int    // of a gap
	timeline                            int    // of the event that it tells of
	foreign                             bool   // its version may be of another timeline
}

// read takes a message apart. Everything is taken from its value, and compared with its id (I8).
func read(m *message) (told, error) {
	t := told{id: m.id, op: field(m.value, `"type":"dev.kubecdc.`), order: m.seq}
	t.resource, t.uid = field(m.value, `"resource":"`), field(m.value, `"uid":"`)
	t.snapshot, t.reason = field(m.value, `"snapshot":"`), field(m.value, `"reason":"`)
	t.unseen = strings.Contains(m.value, `"finalstateunknown":true`)
	t.bare = t.op == "deleted" && strings.Contains(m.value, `"beforeomitted":true`)
	if _, data, found := strings.Cut(m.value, `,"data":`); found {
		t.data = strings.Replace(strings.TrimSuffix(data, "}"), apiVersionJSON("v1beta1"), apiVersionJSON("v1"), 1) // the world's own form
		t.uid = field(strings.TrimSuffix(m.value, data), `"uid":"`)
	}
	if t.op == "gap" {
		t.from, _ = strconv.Atoi(field(t.data, `"lastDelivered":"`))
	}
	namespace, name := field(m.value, `"namespace":"`), ""
	if i := strings.Index(m.value, `,"data":`); t.uid != "" || i < 0 || strings.Contains(m.value[:i], `"name":"`) {
		name = field(m.value, `"name":"`)
	}
	t.namespace = namespace
	if name != "" {
		t.key = namespace + "/" + name
	}
	var err error
	version := field(m.value, `"resourceversion":"`)
	if t.rev, err = strconv.Atoi(version); err != nil {
		return t, fmt.Errorf("message %s has no resourceversion", m.id)
	}
	t.cluster, _, _ = strings.Cut(m.id, "/")
	want := fmt.Sprintf("%s/%s/%s/%s/%s/%s/%s", t.cluster, t.resource, namespace, name, t.uid, version, t.op)
	switch {
	case t.op == "resolved":
		at, _ := time.Parse(time.RFC3339Nano, field(m.value, `"time":"`)) // the comparison fails with another time
		want += fmt.Sprintf("/%s.%d", version, at.UnixMilli())
	case t.op == "sync" || t.op == "gap" || name == "":
		want += "/" + t.snapshot
	}
	if m.id != want || field(m.value, `"id":"`) != want || m.op != t.op {
		return t, fmt.Errorf("message %s should have id %s: %s", m.id, want, m.value)
	}
	return t, nil
}

// field is the string that follows the prefix, "" where there is none.
func field(text, prefix string) string {
	_, rest, found := strings.Cut(text, prefix)
	if !found {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// shared is what all sinks have alike of the data. Where two members begin a reconcile at the same version in the same
// millisecond, before one of them is fenced, each says since when it has heard nothing.
func shared(data string, ofMembers bool) string {
	if before, rest, found := strings.Cut(data, `,"since":"`); found && ofMembers {
		_, rest, _ = strings.Cut(rest, `"`)
		data = before + rest
	}
	return unsalted(data)
}

// final judges every sink's log.
func (j *judge) final() {
	w := j.world
	w.mu.Lock()
	defer w.mu.Unlock()
	contents := map[string]string{}
	for _, spec := range w.script.Sinks {
		log := w.logs[spec.Name]
		seen := map[string]bool{}
		v := &verdict{judge: j, spec: spec, log: log}
		for _, m := range log.all() {
			t, err := read(&m)
			if err != nil {
				w.violateLocked("I8", "sink %s: %v", spec.Name, err)
				return
			}
			if seen[m.id] && m.seq > j.joined[spec.Name] && !(t.op == "gap" && t.key != "") {
				w.violateLocked("I3", "sink %s has %s twice", spec.Name, m.id)
			}
			seen[m.id] = m.seq > j.joined[spec.Name]
			content := shared(t.data, w.script.Members > 0)
			if before, found := contents[m.id]; found && !t.bare && !t.unseen && before != content && t.op != "snapshot.end" && t.op != "resolved" { // counts and comparisons are each sink's own
				w.violateLocked("I8", "%s is %s in one sink and %s in another", m.id, before, t.data)
			}
			if !t.bare && !t.unseen {
				contents[m.id] = content
			}
			if m.seq > j.joined[spec.Name] {
				v.records = append(v.records, t)
			}
		}
		for _, resource := range []string{pods, events} {
			if spec.takes(resource) && w.life.has(spec.Name) {
				v.judgeAll(resource)
			}
		}
	}
}

// verdict is the judgement of one sink, since it was new.
type verdict struct {
	judge   *judge
	spec    sinkSpec
	log     *sinkLog
	records []told

	// of the resource that is judged
	resource string
	all      []told          // the frames of all its streams
	resolved []told          // up to where they say that they are complete
	first    int             // the place of the first record of an object
	frames   []told          // those of the streams that have the object which is judged
	start    int             // a snapshot at this revision began the sink's knowledge of it
	begin    *told           // its frame, nil where there is none
	noted    map[string]bool // the uids of objects of which a record was rejected
	unseen   map[string]bool // the uids of objects whose delete was told by a reconcile
}

// judgeAll judges the records of one resource. What is not configured in the last life stays as it was told last.
func (v *verdict) judgeAll(resource string) {
	v.resource, v.all, v.resolved, v.unseen, v.noted = resource, nil, nil, map[string]bool{}, map[string]bool{}
	byKey := map[string][]told{}
	v.first = math.MaxInt
	for _, t := range v.records {
		switch {
		case t.resource != resource:
		case t.op == "resolved":
			v.resolved = append(v.resolved, t)
		case t.key == "":
			v.all = append(v.all, t)
		default:
			v.first = min(v.first, t.order)
			byKey[t.key] = append(byKey[t.key], t)
			v.unseen[t.uid] = v.unseen[t.uid] || t.unseen
			v.noted[t.uid] = v.noted[t.uid] || t.op == "gap"
		}
	}
	v.announced()
	v.proven()
	for _, key := range append(manyKeys(v.judge.world.script.Many), keys()...) {
		v.narrow(key, byKey[key])
		last, deleted := v.object(key, byKey[key])
		v.complete(key, byKey[key])
		if v.judge.world.life.spec.covers(resource, key) {
			v.present(key, &last, deleted)
		}
	}
}

// narrow finds the frames of the streams that have the object.
func (v *verdict) narrow(key string, records []told) {
	v.frames, v.start, v.begin = nil, 0, nil
	namespace, _, _ := strings.Cut(key, "/")
	first := math.MaxInt // of which snapshot, in time: revisions of two timelines do not compare
	for _, t := range v.all {
		if t.namespace != "" && t.namespace != namespace {
			continue
		}
		v.frames = append(v.frames, t)
		if at, begins := v.begins(&t); begins && (began(t.snapshot) < first || t.order < v.first) {
			if began(t.snapshot) >= first && v.begin.cluster == t.cluster {
				at = max(at, v.start) // it was given the namespace from there, and the stream of all from before
			}
			v.start, v.begin, first = at, &t, began(t.snapshot) // what began before anything was told need not go on
		}
	}
	if v.begin == nil {
		v.start = v.compared()
	}
	if len(v.frames) == 0 && len(records) > 0 && v.judge.world.script.changes(v.resource) {
		v.start = records[0].rev // from the sink's disk, and the frames there were of a stream that has left
	}
}

// compared is the revision of the first reconcile for all sinks that a sink met before a snapshot of its own, which is
// given beside the watch: from there on it was told everything. Where it began before the sink was new, it has no gap.
func (v *verdict) compared() (rev int) {
	first := math.MaxInt
	for i, t := range v.frames {
		meets := t.op == "gap" && t.reason == "gone" || i == 0 && t.op == "snapshot.begin" && v.goesOn(&t)
		if meets && began(t.snapshot) < first {
			rev, first = t.rev, began(t.snapshot)
		}
	}
	return rev
}

// begins says whether the sink's knowledge of an object may begin with the frame, and with which revision. A snapshot
// that somebody asks for may come before a new sink's own. A stream that leaves in its initial snapshot comes back with
// a gap.
func (v *verdict) begins(t *told) (rev int, begins bool) {
	switch {
	case t.op == "gap":
		return t.from, v.judge.world.script.changes(v.resource) && t.reason == "stale"
	case slices.Contains([]string{"initial", "requested", "resync"}, t.reason):
		return t.rev, true
	}
	return 0, false
}

// announced judges the frames: a reconcile that follows a gap is announced by one (I4).
func (v *verdict) announced() {
	if v.damaged() {
		return // it may have lost the gap
	}
	for _, t := range v.all {
		if t.op != "snapshot.begin" || !slices.Contains([]string{"gone", "stale", "epoch", "lost", "left"}, t.reason) {
			continue
		}
		if !slices.ContainsFunc(v.all, func(g told) bool {
			return g.op == "gap" && g.snapshot == t.snapshot && g.namespace == t.namespace && g.order < t.order
		}) && !v.goesOn(&t) {
			v.violate("I4", "%s has no gap before it", t.id)
		}
	}
}

// goesOn says whether the begin is that of a comparison which began before, after a gap. Its end may be there, too,
// where that was not saved; and it may have begun for a stream that the present one has inherited. That no gap is
// missing, the objects' records say.
func (v *verdict) goesOn(t *told) bool {
	comparison, heard, joined := []string{"gone", "stale"}, false, false
	for _, f := range v.all {
		related := f.namespace == t.namespace || f.namespace == "" || t.namespace == ""
		announced := f.op == "gap" && f.order < t.order && f.rev <= t.rev && slices.Contains(comparison, f.reason)
		if related && announced {
			return slices.Contains(comparison, t.reason)
		}
		if !related || f.order >= t.order {
			continue
		}
		if slices.Contains(comparison, f.reason) { // it goes on after a crash, until its end
			joined = !heard && f.op == "snapshot.begin" || joined && f.op != "snapshot.end"
		}
		heard = true
	}
	return (!heard || joined) && slices.Contains(comparison, t.reason)
}

func (v *verdict) violate(invariant, format string, args ...any) {
	v.judge.world.violateLocked(invariant, "sink %s: %s", v.spec.Name, fmt.Sprintf(format, args...))
}

// object judges what the sink was told of one key: each record is true, they are in order, and nothing is missing
// between them that is not excused. It returns what the sink was told last.
func (v *verdict) object(key string, records []told) (last told, deleted bool) {
	history := v.history(key)
	deleted, holds := true, false // holds: the sink has some state of the object, older or newer than a gap
	for _, t := range records {
		if t.op == "deleted" && t.unseen {
			if (v.spec.coalesces() || v.damaged() || v.owed(&t) || v.noted[t.uid]) && (deleted || t.uid != last.uid) {
				// the log lost what it was told of the object, or the sink knew nothing yet, or it rejected the delete
				if v.spec.coalesces() && !deleted && v.neverDeleted(history, last.uid) {
					deleted, holds = true, false // of the object after it, which was merged away: whoever folds by key knows
				}
				continue
			}
			noted := last.op == "gap" && t.uid == last.uid // that was not delivered, whatever it was
			if !noted && (deleted || t.uid != last.uid) && !v.newEpoch(&last, &t) {
				v.violate("I3", "%s tells of a delete of what is not there: %s", t.id, last.id)
			}
			deleted, holds = true, false
			last.id, last.op, last.cluster = t.id, t.op, t.cluster
			if slices.ContainsFunc(history, func(ev event) bool { return ev.uid == t.uid && ev.isUndone() }) {
				last.foreign = true // what comes may be of another timeline
			}
			continue
		}
		v.genuine(history, &t)
		if !v.newEpoch(&last, &t) {
			v.inOrder(&last, deleted, &t)
			v.nothingMissing(history, &last, &t, deleted)
		}
		last, deleted = t, t.op == "deleted" || t.op == "gap" && v.wasDelete(history, &t)
		holds = !deleted && (holds || t.op != "gap") // the note of a delete ends what the sink holds, too
	}
	return last, deleted || !holds && last.op == "gap"
}

// neverDeleted says whether the server lost the delete of the object, so that nobody could tell it.
func (v *verdict) neverDeleted(history []event, uid string) bool {
	return slices.ContainsFunc(history, func(ev event) bool {
		return ev.uid == uid && ev.what == "DELETED" && v.judge.world.server.lost[v.resource][ev.rev]
	})
}

// owed says whether the sink was still to get a full snapshot when the reconcile ran that the record is of. The order
// of arrival does not say so: a batch that breaks may be written in one partition and not yet in another.
func (v *verdict) owed(t *told) bool {
	if !v.judge.world.life.spec.covers(t.resource, t.key) && !v.paid(t) {
		return true // it would come when the object is configured again
	}
	return slices.ContainsFunc(v.frames, func(end told) bool {
		if end.op != "snapshot.end" || end.reason != "lost" {
			return false
		}
		if t.snapshot == "" { // a listener told it, before a record of the watch
			return end.order > t.order
		}
		return began(end.snapshot) >= began(t.snapshot)
	})
}

// paid says whether the sink had any full snapshot before the record.
func (v *verdict) paid(t *told) bool {
	return slices.ContainsFunc(v.frames, func(end told) bool {
		return end.op == "snapshot.end" && end.order < t.order && slices.Contains([]string{"initial", "lost"}, end.reason)
	})
}

// began is when the snapshot of the id began, in ms.
func began(snapshot string) int {
	_, text, _ := strings.Cut(snapshot, ".")
	text, _, _ = strings.Cut(text, ".")
	ms, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("snapshot %q has no time", snapshot))
	}
	return ms
}

// newEpoch says whether another timeline was announced between the records: versions say nothing then.
func (v *verdict) newEpoch(last, t *told) bool {
	if t.reason == "epoch" || v.damaged() && len(v.judge.world.server.etcd.undone) > 0 { // the log may have lost the gap
		return true
	}
	if last.id != "" && last.cluster[:8] != t.cluster[:8] {
		return true // an initial snapshot that another cluster interrupts has no position to announce a gap from
	}
	return slices.ContainsFunc(v.frames, func(g told) bool {
		return g.op == "gap" && g.reason == "epoch" && (g.order > last.order && g.order < t.order || len(v.log.partitions) > 1)
	})
}

// genuine judges that the record is what happened.
func (v *verdict) genuine(history []event, t *told) {
	what := map[string]string{"added": "ADDED", "updated": "MODIFIED", "deleted": "DELETED"}[t.op]
	for i := range history {
		ev := &history[i]
		if ev.uid != t.uid || ev.rev != t.rev || ev.isUndone() && ev.undone.Before(change.EpochFound(t.cluster)) {
			continue // or it was undone before the record's history was found
		}
		switch {
		case t.op == "gap":
			t.timeline = ev.timeline
			return
		case (what == ev.what || what == "" && ev.what != "DELETED") && (isOf(t.data, ev.body) || t.bare && v.log.rejects):
			t.timeline = ev.timeline
			return
		}
	}
	v.violate("I4", "%s with %s never happened", t.id, t.data)
}

// wasDelete says whether the record that a gap stands for was a delete.
func (v *verdict) wasDelete(history []event, t *told) bool {
	return slices.ContainsFunc(history, func(ev event) bool { return ev.what == "DELETED" && ev.uid == t.uid && ev.rev == t.rev })
}

// inOrder judges that the record may follow the last.
func (v *verdict) inOrder(last *told, deleted bool, t *told) {
	switch {
	case last.foreign:
	case t.op == "gap" && last.op == "gap" && t.rev == last.rev: // a full snapshot has it again, and it is noted again
	case t.op == "gap" && t.uid == last.uid && t.rev == last.rev && v.judge.world.task != nil:
		// a full snapshot has it again, of a member whose rules do not make it small enough
	case t.rev < last.rev, t.rev == last.rev && t.op != "sync":
		v.violate("I3", "%s comes after %s", t.id, last.id)
	case deleted && t.uid == last.uid:
		v.violate("I3", "%s comes after the object was deleted: %s", t.id, last.id)
	}
}

// nothingMissing judges what happened between two records.
func (v *verdict) nothingMissing(history []event, last, t *told, deleted bool) {
	if last.id == "" && v.begin != nil && v.begin.op == "gap" && t.order < v.begin.order {
		return // the sink was new to the stream that has become another's, which has that gap
	}
	lostDelete, lostState, passed := false, false, false
	for i := range history {
		ev := &history[i]
		if ev.rev <= last.rev || ev.rev >= t.rev || ev.timeline > t.timeline || ev.isUndone() && ev.timeline < t.timeline {
			continue
		}
		excused, lost := v.excused(ev, t), v.judge.world.server.lost[v.resource][ev.rev]
		if !excused && !v.ignored(history, last, ev) && !v.ignoredFirst(history, last, t, ev) {
			v.violate("I4", "%s %s %s at %d is missing before %s", ev.what, ev.key, ev.uid, ev.rev, t.id)
		}
		lostDelete = lostDelete || lost && ev.what == "DELETED"
		lostState = lostState || lost && ev.what != "DELETED" && ev.uid == t.uid
		passed = passed || excused && ev.what == "DELETED" && ev.uid == last.uid
	}
	lostDelete = lostDelete || lostState && passed // a comparison leaves both to the watch, which would bring the state
	if !deleted && t.uid != last.uid && last.uid != "" && last.op != "gap" && !lostDelete && !v.damaged() {
		v.violate("I4", "%s follows %s, and nobody told that the first was deleted", t.id, last.id)
	}
}

// damaged says whether the log has lost records: what they said is then missing here, too.
func (v *verdict) damaged() bool { return len(v.log.lostIDs) > 0 }

// excused says whether the event may be missing before the record: a gap was announced, the sink did not know the
// stream yet, the server lost it, or the sink did.
func (v *verdict) excused(ev *event, t *told) bool {
	if t != nil && v.spec.coalesces() || ev.rev <= v.start || v.judge.world.server.lost[v.resource][ev.rev] || v.lostHere(ev) {
		return true
	}
	if t != nil && v.begin != nil && t.cluster != v.begin.cluster && t.order < v.begin.order {
		return true // its knowledge began in a later timeline: revisions of two do not compare
	}
	if ev.what == "DELETED" && v.judge.world.server.unseen[ev.uid] {
		return true // nobody may know that it was there
	}
	if v.resource == events && ev.what == "DELETED" && v.unseen[ev.uid] {
		return true // a list at exactly this revision, between two of its deletes, was sooner than the watch
	}
	for _, g := range v.frames {
		from := g.from
		if v.resource == events && ev.what == "DELETED" {
			from-- // a position within the deletes of one revision
		}
		if g.reason == "epoch" || g.reason == "lost" {
			from = 0 // of a timeline that is over, of a log that is cut
		}
		if g.op == "gap" && from < ev.rev && ev.rev <= g.rev && (t == nil || g.order < t.order || len(v.log.partitions) > 1 || g.reason == "lost") {
			return true
		}
	}
	return false
}

func (v *verdict) lostHere(ev *event) bool {
	part := fmt.Sprintf("/%s/%d/", ev.uid, ev.rev)
	for id := range v.log.lostIDs {
		if strings.Contains(id, part) {
			return true
		}
	}
	return false
}

// present compares what the sink was told last with the cluster.
func (v *verdict) present(key string, last *told, deleted bool) {
	history := v.history(key)
	now, there := v.judge.world.server.etcd.find(v.resource, key)
	if !there && v.swept(last) {
		deleted = true
	}
	switch {
	case last.op == "gap" && (last.rev == now.rev || there && v.ignored(history, last, &now) || !there && deleted): // the sink never took it, and says so
	case deleted && there:
		v.violate("I4", "%s is %s at %d, and the sink was told last %q", key, now.uid, now.rev, last.id)
	case !deleted && !there:
		v.violate("I4", "%s is gone, and the sink was told last %s", key, last.id)
	case there && v.ignored(history, last, &now):
	case there && (last.uid != now.uid || last.rev != now.rev || !isOf(last.data, now.body)):
		v.violate("I4", "%s is %s at %d, and the sink was told last %s with %s", key, now.uid, now.rev, last.id, last.data)
	}
	if v.spec.coalesces() && deleted && !there {
		return // what was made and deleted again while the delete was queued
	}
	for i := range history {
		ev := &history[i]
		if ev.rev > last.rev && ev.timeline == v.judge.world.server.etcd.timeline && !v.excused(ev, nil) && !v.ignored(history, last, ev) {
			v.violate("I4", "%s %s %s at %d is missing after %q", ev.what, ev.key, ev.uid, ev.rev, last.id)
		}
	}
}

// complete judges what is resolved: as far as it says, the sink was told how the object is, unless it is compared. What
// a log, an etcd or a watch has lost nobody can tell.
func (v *verdict) complete(key string, records []told) {
	server := v.judge.world.server
	if v.damaged() || len(server.etcd.undone) > 0 || len(server.lost[v.resource]) > 0 {
		return
	}
	namespace, _, _ := strings.Cut(key, "/")
	history, next := v.history(key), 0
	last, deleted, highest := told{}, true, 0
	for _, r := range v.resolved {
		for ; next < len(records) && records[next].order < r.order; next++ {
			last, highest = records[next], max(highest, records[next].rev)
			deleted = last.op == "deleted" || last.op == "gap" && v.wasDelete(history, &last)
		}
		happened := 0
		for happened < len(history) && history[happened].rev <= r.rev {
			happened++
		}
		if happened == 0 || r.snapshot != "" || r.namespace != "" && r.namespace != namespace {
			continue
		}
		now := &history[happened-1]
		isTold := highest >= now.rev || v.ignored(history, &last, now) || now.what == "DELETED" && deleted
		if !isTold {
			v.violate("I4", "%s comes before %s %s at %d; the sink was told last %q", r.id, now.what, now.uid, now.rev, last.id)
		}
	}
}

// proven judges what is said of the objects that the log had: they are those of its fold. What a log has lost is in it
// no more, and of a rejected record the log does not say whether it was a delete. In a log of several partitions the
// order of arrival is not that of the fold, for which a topic has what is resolved in each of them.
func (v *verdict) proven() {
	if len(v.log.partitions) > 1 {
		return
	}
	objects, folds := map[string]string{}, map[string]string{} // by key, and by what was resolved when
	for at := range v.records {
		t := &v.records[at]
		switch {
		case t.resource != v.resource:
		case v.damaged() || t.op == "gap" && t.key != "":
			return
		case t.op == "deleted":
			delete(objects, t.key)
		case t.op == "resolved":
			_, before, said := strings.Cut(t.data, `"digest":`)
			if fold, known := folds[t.namespace+field(before, `{"time":"`)]; said && known && !strings.Contains(before, fold) {
				v.violate("I1", "%s says of the objects before it %s, and the log's fold is %s", t.id, before, fold)
			}
			folds[t.namespace+field(t.data, `"time":"`)] = digestOf(objects)
		case t.key != "":
			objects[t.key] = t.key + "/" + t.uid + "/" + strings.Split(t.id, "/")[5]
		}
	}
}

// digestOf is the digest of docs/formats.md.
func digestOf(objects map[string]string) string {
	sum := new(big.Int)
	for _, object := range objects {
		hash := sha256.Sum256([]byte(object))
		sum.Add(sum, new(big.Int).SetBytes(hash[:16]))
	}
	return fmt.Sprintf(`"objects":%d,"sum":"%032x"`, len(objects), sum.And(sum, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))))
}

// swept says whether the log lost what it was told of the object and a complete full snapshot came after it, which
// does not have it: where the log cannot be read, nobody else knows that the sink still has it.
func (v *verdict) swept(last *told) bool {
	return v.damaged() && !v.log.readable() && slices.ContainsFunc(v.frames, func(f told) bool {
		return f.op == "snapshot.end" && f.reason == "lost" && last.order < f.order
	})
}

// history is what happened to the key.
func (v *verdict) history(key string) []event {
	var all []event
	e := v.judge.world.server.etcd
	for _, ev := range slices.Concat(e.undone, e.history) {
		if ev.resource == v.resource && ev.key == key {
			all = append(all, ev)
		}
	}
	return all
}
