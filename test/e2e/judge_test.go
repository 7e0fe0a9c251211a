package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// judge compares what one sink holds with what the API server is known to have stored.
type judge struct {
	findings
	histories map[string]*history
	cluster   string // its uid, "" where that is not judged
	// there may be gaps, which must be announced: the API server was restarted, or a sink lost its log
	gaps      bool
	drift     bool            // the sinks may ask for resyncs, which may correct what no watch told of
	inherited map[string]told // what the sink had of the history before, by uid

	// begunAnew is for logs that get a whole snapshot after what they have: they lost their end, or another exporter
	// took them over. States come a second time then, and what the first snapshot of another exporter does not name is
	// gone: it knows nothing of deletes.
	begunAnew bool

	resolved int                // how often the sink said that it is complete
	digests  int                // how often it said which objects it had
	had      map[uint64]bool    // versions that the log has before its first gap
	courses  map[string]*course // by resource
	objects  map[string][]told  // by uid, in the sink's order
	ids      map[string]int     // the place of each
}

// findings are what a judge finds to be wrong with a sink.
type findings struct {
	sink   string
	faults []string
}

// told is an event that speaks of an object.
type told struct {
	event
	listed uint64 // the resourceVersion of its reconcile, 0 for a record of the watch
}

func newJudge(sink string, histories map[string]*history, gaps bool) *judge {
	return &judge{
		findings: findings{sink: sink}, histories: histories, gaps: gaps,
		courses: map[string]*course{}, objects: map[string][]told{}, ids: map[string]int{},
	}
}

// hear takes all events of the sink, and finds what is wrong with them.
func (j *judge) hear(events []event) {
	if j.begunAnew {
		events, j.had = fromGap(events)
	}
	for i := range events {
		j.hearForm(&events[i])
	}
	for _, e := range inOrder(events) {
		if err := j.course(e.kind()).take(e); err != nil {
			j.fault("%v:\n%s", err, e)
		}
		j.note(e)
	}
	for resource, c := range j.courses {
		j.judgeCourse(resource, c)
	}
	for _, uid := range slices.Sorted(maps.Keys(j.histories)) {
		j.judgeObject(j.histories[uid], j.objects[uid])
	}
	byResource := map[string][]*history{}
	for _, h := range j.histories {
		byResource[h.resource] = append(byResource[h.resource], h)
	}
	for i := range events {
		if e := &events[i]; e.op() == "resolved" {
			j.judgeResolved(e, byResource[e.kind()])
		}
	}
	j.judgeDigests(events)
	for uid, found := range j.objects {
		if _, inherited := j.inherited[uid]; j.histories[uid] == nil && !inherited {
			j.fault("an object that nobody made:\n%s", excerpt(found))
		}
	}
	for uid, had := range j.inherited {
		if j.histories[uid] == nil {
			j.judgeForgotten(had, j.objects[uid])
		}
	}
}

// judgeForgotten judges what became of an object that this history never had: one delete, which no watch can have told.
func (j *judge) judgeForgotten(had told, events []told) {
	if len(events) != 1 || events[0].op() != "deleted" || !events[0].FinalStateUnknown || events[0].Reason != "epoch" {
		j.fault("an object of another history, which must be deleted once by the epoch's reconcile:\n%s\n%s", &had.event, excerpt(events))
	}
}

// judgeResolved judges that the sink was told before how each object of the resource was at the version, unless the
// event says that a comparison is under way. Of several partitions, each has the objects that were told there.
func (j *judge) judgeResolved(e *event, histories []*history) {
	var said struct{ Comparing string }
	if err := json.Unmarshal(e.Data, &said); err != nil || j.begunAnew || said.Comparing != "" {
		return
	}
	j.resolved++
	for _, h := range histories {
		at, there, sure := h.at(e.version())
		if e.Namespace != "" && e.Namespace != h.namespace() || !sure {
			continue
		}
		events := j.objects[h.uid]
		if e.scattered() && (len(events) == 0 || events[0].seat.partition != e.seat.partition) {
			continue
		}
		newest, gone := uint64(0), true
		for _, t := range events {
			if !e.scattered() && t.place < e.place || e.scattered() && t.seat.offset < e.seat.offset {
				newest, gone = max(newest, t.version()), t.op() == "deleted"
			}
		}
		if there && newest < at.number || !there && !gone && at.number > 0 {
			j.fault("what is resolved comes before version %d of what is there (%v), and the newest that was told is %d:\n  stored: %s\n%s",
				at.number, there, newest, h, e)
		}
	}
}

// judgeDigests folds each partition, and judges what is said of its objects where something was resolved. What is
// resolved in all partitions, or in the one that there is, has all objects of its resource before it.
func (j *judge) judgeDigests(events []event) {
	type digest struct {
		Time    string
		Objects int
		Sum     string
	}
	type data struct {
		Time   string
		Digest *digest
	}
	objects, folds, claims := map[string]map[string]string{}, map[string]map[int][]string{}, map[string]*digest{}
	for i := range events {
		e, partition := &events[i], 0
		if e.scattered() {
			partition = e.seat.partition
		}
		at := fmt.Sprint(e.kind(), " ", partition)
		if objects[at] == nil {
			objects[at] = map[string]string{}
		}
		switch key := e.Namespace + "/" + e.Name; {
		case j.begunAnew || e.op() == "gap" && e.Name != "":
			return // it does not say what became of the object
		case e.op() == "deleted":
			delete(objects[at], key)
		case e.op() == "resolved":
			var said data
			if err := json.Unmarshal(e.Data, &said); err != nil {
				j.fault("%v:\n%s", err, e)
				return
			}
			of := e.kind() + " " + e.Namespace + " "
			if folds[of+said.Time] == nil {
				folds[of+said.Time] = map[int][]string{}
			}
			folds[of+said.Time][partition] = slices.Collect(maps.Values(objects[at]))
			if said.Digest != nil {
				claims[of+said.Digest.Time] = said.Digest
			}
		case e.UID != "":
			objects[at][key] = key + "/" + e.UID + "/" + e.ResourceVersion
		}
	}
	widest := 0
	for _, partitions := range folds {
		widest = max(widest, len(partitions))
	}
	for of, claim := range claims {
		all := slices.Concat(slices.Collect(maps.Values(folds[of]))...)
		if len(folds[of]) < widest {
			continue
		}
		sum := new(big.Int)
		for _, object := range all {
			hash := sha256.Sum256([]byte(object))
			sum.Add(sum, new(big.Int).SetBytes(hash[:16]))
		}
		sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 128))
		if j.digests++; claim.Objects != len(all) || claim.Sum != fmt.Sprintf("%032x", sum) {
			j.fault("what was resolved of %s had %+v, and the log has %d objects, %032x", of, *claim, len(all), sum)
		}
	}
}

// note remembers what the event says of its object.
func (j *judge) note(e *event) {
	if e.UID != "" {
		j.objects[e.UID] = append(j.objects[e.UID], told{*e, j.course(e.kind()).listed(e)})
	}
}

func (j *judge) course(resource string) *course {
	if j.courses[resource] == nil {
		j.courses[resource] = &course{drift: j.drift, taken: j.begunAnew}
	}
	return j.courses[resource]
}

// hearForm judges the event by itself: its id is its own, and its data and its subject are of the object that it names.
func (j *judge) hearForm(e *event) {
	eachHas := e.op() == "resolved" && e.scattered() // partition
	if place, twice := j.ids[e.ID]; twice && !eachHas && !(j.begunAnew && e.op() == "replaced") {
		j.fault("the id is at place %d already: %s\n%s", place, e.ID, e)
	}
	j.ids[e.ID] = e.place
	if !strings.HasPrefix(e.ID, j.cluster[:min(len(j.cluster), 8)]) {
		j.fault("the id is of another cluster than %s:\n%s\n%s", j.cluster, e.ID, e)
	}
	if e.header != "" && e.header != e.ID {
		j.fault("the header says %s, the event %s", e.header, e.ID)
	}
	if want := route(strings.TrimPrefix(e.Source, "/clusters/"), e); e.routed != "" && e.routed != want {
		j.fault("the subject is %s, want %s", e.routed, want)
	}
	if e.seat != nil {
		if wrong := e.seat.complaint(e); wrong != "" {
			j.fault("%s:\n%s", wrong, e)
		}
	}
	if e.UID == "" || e.FinalStateUnknown {
		return
	}
	var c content
	if err := json.Unmarshal(e.Data, &c); err != nil {
		j.fault("the data are no object: %v:\n%s", err, e)
		return
	}
	m := &c.Metadata
	if m.UID != e.UID || m.Name != e.Name || m.Namespace != e.Namespace || m.ResourceVersion != e.ResourceVersion || c.Kind == "" || c.APIVersion == "" {
		j.fault("the data are of another object: %+v:\n%s", c, e)
	}
}

// judgeCourse judges the end of a resource's events.
func (j *judge) judgeCourse(resource string, c *course) {
	if c.open != nil && c.open.reason != "resync" || c.gap != nil { // a stop may break a resync, whose turn comes again
		j.fault("%s ends within a reconcile or a gap", resource)
	}
	if c.early != nil {
		j.fault("%s has records of the watch, and no reconcile:\n%s", resource, c.early)
	}
	for _, s := range c.spans {
		if announced(s.reason) && !j.gaps {
			j.fault("%s has a reconcile of reason %s, and nothing was lost", resource, s.reason)
		}
	}
}

// judgeObject judges the events of one object: every version once and in order, but for what a gap covers; the delete
// once, and last.
func (j *judge) judgeObject(h *history, events []told) {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	c := j.course(h.resource)
	delivered := map[uint64]int{} // where
	newest, unknown, deletes := uint64(0), 0, 0
	had, inherited := j.inherited[h.uid] // which proves nothing of this history, also where the version is the same
	for _, e := range events {
		if deletes > 0 {
			fault("an event follows the delete")
		}
		if e.op() == "deleted" {
			deletes++
			delivered[gone] = e.place
			judgeDelete(h, e, max(newest, had.version()), fault)
			continue
		}
		// A reconcile of an epoch that was interrupted begins again, and trusts nothing that it told before.
		state := e.op() == "sync" || e.Reason == "epoch" || j.begunAnew && e.op() == "replaced"
		if again := state && e.version() == newest; e.version() <= newest && !again {
			fault("version %d follows version %d", e.version(), newest)
		}
		newest = max(newest, e.version())
		if delivered[newest] == 0 {
			delivered[newest] = e.place
		}
		if !judgeVersion(h, e, fault) {
			unknown++
		}
	}
	if unknown > h.hidden {
		fault("%d versions that the API server did not store", unknown)
	}
	j.judgeMissing(h, c, delivered, fault)
	if want := h.gone && (len(events) > 0 || inherited) && !j.forgotten(events); want && deletes != 1 || !h.gone && deletes > 0 {
		fault("%d deletes of an object that is gone: %v", deletes, h.gone)
	}
	if len(faults) > 0 {
		j.fault("%s\n  stored: %s\n%s", strings.Join(faults, "; "), h, excerpt(events))
	}
}

// judgeVersion judges an event with a state, and says whether the version is a known one.
func judgeVersion(h *history, e told, fault func(string, ...any)) bool {
	i := h.find(e.version())
	if i < 0 {
		hidden := e.op() == "updated" || e.op() == "replaced" && e.version() <= e.listed
		if !h.gone || !hidden || e.version() < h.last().number {
			fault("version %d was never stored", e.version())
		}
		return false
	}
	var c content
	if json.Unmarshal(e.Data, &c) == nil && c.Metadata.Annotations[markAnnotation] != h.versions[i].mark {
		fault("version %d says %q, want %q", e.version(), c.Metadata.Annotations[markAnnotation], h.versions[i].mark)
	}
	if first := h.born && i == 0; e.op() == "added" && !first || e.op() == "updated" && first {
		fault("version %d is %s", e.version(), e.op())
	}
	if (e.op() == "replaced" || e.op() == "sync") && e.listed > 0 { // a correction stands outside
		// What has changed since the begin, and was told by the watch, is listed, too.
		if at, listed, sure := h.at(e.listed); e.version() <= e.listed && sure && !listed || at.number > e.version() {
			fault("version %d is replaced by a list at %d", e.version(), e.listed)
		}
	}
	return true
}

// judgeDelete judges the delete of an object of which the newest version was delivered before.
func judgeDelete(h *history, e told, newest uint64, fault func(string, ...any)) {
	switch {
	case e.FinalStateUnknown && e.Snapshot == "":
		fault("a delete of unknown final state that no reconcile found")
	case e.FinalStateUnknown:
		if e.version() < newest { // it names what was told last, or what is below the object that has its name now
			fault("the delete names version %d", e.version())
		}
	case e.Snapshot != "":
		fault("a reconcile knows the final state")
	case h.deletion != 0 && e.version() != h.deletion, e.version() <= h.last().number:
		fault("the delete is version %d", e.version())
	}
}

// judgeMissing judges the versions that are not there: a reconcile must cover each, and have delivered the one that it
// found.
func (j *judge) judgeMissing(h *history, c *course, delivered map[uint64]int, fault func(string, ...any)) {
	for _, v := range h.versions {
		switch {
		case delivered[v.number] > 0:
		case !c.covered(v.number):
			fault("version %d is missing", v.number)
		case v.number > c.first:
			c.lost++
		}
	}
	for _, s := range c.spans {
		at, listed, sure := h.at(s.to)
		told := delivered[at.number] > 0 || j.had[at.number] || (s.reason == "lost" || isComparison(s.reason)) && overtaken(delivered, s)
		if listed && sure && !told {
			fault("version %d is missing, and was in the list at %d", at.number, s.to)
		}
	}
}

// gone is the version by which a delete is known.
const gone = math.MaxUint64

// overtaken says whether the object was told in a version that is newer than the list of a snapshot, or to be gone,
// before the snapshot ended: the watch may have told of it before the snapshot came to it.
func overtaken(delivered map[uint64]int, s span) bool {
	for version, place := range delivered {
		if version > s.to && (s.end == 0 || place < s.end) {
			return true
		}
	}
	return false
}

func (j *findings) fault(format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf(format, args...))
}

// verdict fails the test if there are faults, and shows some of them.
func (j *findings) verdict(t *testing.T) {
	t.Helper()
	const most = 6
	for i, fault := range j.faults {
		if i == most {
			break
		}
		t.Errorf("sink %s: %s", j.sink, fault)
	}
	if n := len(j.faults); n > most {
		t.Errorf("sink %s: %d faults more", j.sink, n-most)
	}
}

// state is what a consumer that follows the sink believes to exist, by uid.
func (j *judge) state() map[string]told {
	state := maps.Clone(j.inherited)
	if state == nil {
		state = map[string]told{}
	}
	for uid, events := range j.objects {
		last := events[len(events)-1]
		if state[uid] = last; last.op() == "deleted" || j.forgotten(events) {
			delete(state, uid)
		}
	}
	return state
}

// forgotten says whether another exporter's first snapshot begins after the object's last event.
func (j *judge) forgotten(events []told) bool {
	if !j.begunAnew || len(events) == 0 {
		return false
	}
	last := events[len(events)-1]
	return last.place < j.course(last.kind()).anew
}

// excerpt is the events of an object, for people.
func excerpt(events []told) string {
	if len(events) == 0 {
		return "  no event"
	}
	lines := make([]string, len(events))
	for i := range events {
		lines[i] = "  " + events[i].event.String()
	}
	return strings.Join(lines, "\n")
}
