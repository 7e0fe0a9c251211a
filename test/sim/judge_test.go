package sim

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
	"github.com/kubecdc/kubecdc/internal/disk"
	"github.com/kubecdc/kubecdc/internal/fifo"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/internal/source"
)

// judge knows what must be true. It watches the line while it runs, compares each reopened state with what was saved,
// and reads the sinks' logs in the end. It shares no code with the line but the values of package change.
type judge struct {
	world *world
	// saved is what the state must hold when the next life opens it.
	saved map[string]*savedStream
	// marks are by sink what the state is known to have.
	marks map[string]sink.Mark
	// joined is by sink the number of its log's records when it last became new.
	joined map[string]int
}

// savedStream is the state of one stream as of the last life.
type savedStream struct {
	position  change.Position
	inventory map[string]string // key -> uid@version
}

// streamRecord is what one life did with one stream; the world's lock guards it.
type streamRecord struct {
	received  []*change.Record // in the order in which they went in line
	committed int              // how many of them were reported as saved
}

// drop forgets what came next and never was in line: another stream of the session reads it again.
func (r *streamRecord) drop() {
	for r.committed < len(r.received) && r.received[r.committed].Seq == 0 {
		r.received = slices.Delete(r.received, r.committed, r.committed+1)
	}
}

func newJudge(w *world) *judge {
	j := &judge{world: w, marks: map[string]sink.Mark{}, joined: map[string]int{}, saved: map[string]*savedStream{}}
	for _, name := range w.script.streams() {
		j.saved[name] = &savedStream{inventory: map[string]string{}}
	}
	return j
}

func (j *judge) sourceObserver(l *life) source.Observer {
	o := source.NopObserver()
	o.Received = func(rec *change.Record) {
		j.world.mu.Lock()
		defer j.world.mu.Unlock()
		r := l.streams[rec.Stream.String()]
		r.received = append(r.received, rec)
	}
	o.Failed = func(stream change.Stream, err error) { l.note("fail", stream.String()+": "+err.Error()) }
	return o
}

func (j *judge) pipelineObserver(l *life) pipeline.Observer {
	o := pipeline.NopObserver()
	o.Committed = func(batch []*change.Record, marks map[string]sink.Mark, _ time.Duration) {
		j.world.mu.Lock()
		defer j.world.mu.Unlock()
		if !l.dead {
			j.committed(l, batch, marks)
		}
	}
	o.Queued = func(name string, backlog fifo.Levels) {
		if most := 2 * l.roomOf(name); backlog.Records > most {
			j.world.violate("I6", "sink %s holds %d records, %d are allowed in its queue", name, backlog.Records, most/2)
		}
	}
	o.Failed = func(name string, err error) { l.note("fail", "sink "+name+": "+err.Error()) }
	o.Stopped = func(name string, err error) {
		l.note("fail", "sink "+name+" is stopped: "+err.Error())
		if isFenced(err) {
			l.shutOut()
		}
	}
	o.Absent = func(name string) {
		l.note("fail", "sink "+name+" is absent")
		j.world.mu.Lock()
		defer j.world.mu.Unlock()
		l.absent[name] = true
	}
	o.Missed = func(name string, stream change.Stream) {
		j.world.mu.Lock()
		defer j.world.mu.Unlock()
		j.missesStream(l, name, stream)
	}
	o.CommitFailed = func(err error) { l.note("fail", "commit: "+err.Error()) }
	return o
}

// roomOf is how many records the sink may hold. One that spools may hold what others let in that keep it from going to
// disk: as many as fit into their queues, or into the line's window where one does not spool, or merges what waits for
// it.
func (l *life) roomOf(name string) (room int) {
	all, spools := 0, false
	for _, spec := range l.world.script.Sinks {
		all += spec.Queue
		if spec.Name != name && spec.Full != "spool" || spec.coalesces() {
			all += 1 << 14
		}
		if spec.Name == name {
			room, spools = spec.Queue, spec.spool() > 0
		}
	}
	if spools {
		return all
	}
	return room
}

// committed judges what was reported as saved: it is the next in line (I2), and every sink that wants it has it (I1).
func (j *judge) committed(l *life, batch []*change.Record, marks map[string]sink.Mark) {
	for _, rec := range batch {
		r := l.streams[rec.Stream.String()]
		r.drop()
		if r.committed >= len(r.received) || r.received[r.committed] != rec {
			j.world.violateLocked("I2", "%s is saved, and it is not the next of its stream", describe(rec))
			return
		}
		r.committed++
		for _, spec := range j.world.script.Sinks {
			if !rec.Filtered && j.world.script.Without != withoutOrder && spec.Full == "block" && !l.misses(spec.Name, rec.Stream) && l.wants(spec, rec) && !j.durable(l, j.world.logs[spec.Name], rec) {
				j.world.violateLocked("I1", "%s is saved, and sink %s does not have it", describe(rec), spec.Name)
			}
		}
	}
	if l.isLeader() {
		maps.Copy(j.marks, marks)
	}
	l.noteLocked("saved", fmt.Sprintf("%d records, marks %v", len(batch), marks))
}

// tails holds I6 to what a crash would leave to be read of a log: whoever is stuck, it is short when nothing has
// happened for a while. What a sink holds up by itself, or has on disk, is another matter, and so is a life that found
// no room to open the state.
func (j *judge) tails(l *life) {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	if l.dead || !l.opened || l.truncated || l.ousted || l.fenced || j.world.script.Without == withoutOrder {
		return
	}
	for _, spec := range j.world.script.Sinks {
		g := j.world.logs[spec.Name]
		if spec.Full != "block" || !l.has(spec.Name) || l.absent[spec.Name] || j.marks[spec.Name] == "" || time.Now().Before(g.away) || !g.broken.IsZero() {
			continue
		}
		batch := spec.Queue // was perhaps being written when the mark went on last
		most := l.left[spec.Name] + int(j.world.script.markLag()) + batch + 2
		if ids, err := g.behind(j.marks[spec.Name]); err == nil && len(ids) > most {
			j.world.violateLocked("I6", "sink %s has %d records behind its mark, %d are allowed", spec.Name, len(ids), most)
		}
	}
}

// durable says whether the sink has the record, in whatever shape.
func (j *judge) durable(l *life, g *sinkLog, rec *change.Record) bool {
	ops := []string{rec.Op.String()}
	switch rec.Op {
	case change.Replaced:
		ops = append(ops, "added", "updated")
	case change.Added, change.Updated:
		ops = append(ops, "replaced")
	}
	for _, op := range ops {
		if g.has(j.id(rec, op)) {
			return true
		}
	}
	exact := rec.Op.OfObject() && rec.Snapshot != nil && (rec.Snapshot.Reason.Full() || rec.Snapshot.Reason == change.Initial)
	full := exact && rec.Snapshot.Reason.Full() // a correction, too
	if rec.Op == change.Replaced && slices.Contains([]change.Reason{change.Gone, change.Stale}, rec.Snapshot.Reason) {
		exact = true // it is found beside the watch
	}
	switch {
	case (rec.Op == change.Deleted || full) && g.hasDelete(rec.UID), g.toldAhead(rec):
		return true
	case exact && g.hasNewer(rec, rec.Snapshot.ResourceVersion), rec.Snapshot == nil && g.hasNewer(rec, rec.ResourceVersion):
		return true // after that it would be false
	case rec.Op == change.Deleted && rec.FinalStateUnknown && (g.hasSuccessor(rec) || j.endIsNoted(l, g, rec)):
		return true // after that it would be false, or there once more
	}
	note := *rec
	note.Op, note.Snapshot = change.Gap, nil
	return g.rejects && g.has(j.id(&note, "gap")+"/"+rec.ResourceVersion)
}

// endIsNoted says whether the log had the note of the object's own delete, which the sink rejected, before the mark
// with which the life began. Such a mark carries the id of the delete, not of its note. Where no watch brings the
// delete again, a comparison finds that the object is gone, at the version that the state has of it. The sink has been
// told, as it would have been had there been no crash. What a note behind the mark is of nobody knows: then the delete
// comes.
func (j *judge) endIsNoted(l *life, g *sinkLog, rec *change.Record) bool {
	note := *rec
	note.Op, note.Snapshot = change.Gap, nil
	e := j.world.server.etcd
	return slices.ContainsFunc(slices.Concat(e.undone, e.history), func(ev event) bool {
		note.ResourceVersion = strconv.Itoa(ev.rev)
		return ev.uid == rec.UID && ev.what == "DELETED" && l.notes[g.name][j.id(&note, "gap")+"/"+note.ResourceVersion]
	})
}

// id is the id that the record must have (I8).
func (j *judge) id(rec *change.Record, op string) string {
	cluster, history, again := strings.Cut(rec.Epoch, "~")
	if cluster = cluster[:8]; again {
		cluster += "~" + history
	}
	namespace := rec.Key.Namespace
	if rec.Key.Name == "" {
		namespace = rec.Stream.Namespace
	}
	id := fmt.Sprintf("%s/%s/%s/%s/%s/%s/%s", cluster, rec.Stream.Resource.Name,
		namespace, rec.Key.Name, rec.UID, rec.ResourceVersion, op)
	if rec.Snapshot != nil && (rec.Op == change.Sync || rec.Key.Name == "") {
		id += "/" + rec.Snapshot.ID
	}
	return id
}

// toldAnyone says whether a sink was given the state of the object.
func (j *judge) toldAnyone(uid string, rev int) bool {
	part := fmt.Sprintf("/%s/%d/", uid, rev)
	for _, g := range j.world.logs {
		for _, m := range g.all() {
			if m.op != "deleted" && strings.Contains(m.id, part) {
				return true
			}
		}
		for id := range g.lostIDs {
			if strings.Contains(id, part) {
				return true
			}
		}
	}
	return false
}

func describe(rec *change.Record) string {
	return fmt.Sprintf("record %d, %s of %s %s version %s", rec.Seq, rec.Op, rec.Stream, rec.Key, rec.ResourceVersion)
}

// opened compares a state with what the last life saved (I5): it holds what was reported as saved and perhaps more of
// what was in line, positions and inventory of the same instant.
func (j *judge) opened(l *life, store *checkpoint.Store) {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	if l.dead {
		return
	}
	l.opened = true
	if t := j.world.task; t != nil {
		defer t.begins(l)
	}
	l.base = map[string]*savedStream{}
	var at []string
	for _, name := range j.world.script.streams() {
		found, err := readStream(store, name)
		if err != nil {
			j.world.violateLocked("I5", "the state of %s cannot be read: %v", name, err)
			return
		}
		if !j.mayOpen(l, name, found) {
			j.world.violateLocked("I5", "the state of %s is %+v, which is nothing that was saved", name, *found)
		}
		l.base[name] = found
		at = append(at, name+" at "+found.position.ResourceVersion)
	}
	marks, err := store.Marks()
	if err != nil {
		j.world.violateLocked("I5", "the marks cannot be read: %v", err)
	}
	if l.isLeader() {
		j.marks, j.saved = marks, maps.Clone(l.base)
	}
	for _, spec := range j.world.script.Sinks {
		l.notes[spec.Name] = j.world.logs[spec.Name].notesBefore(marks[spec.Name])
		if _, known := marks[spec.Name]; !known && l.has(spec.Name) {
			j.joins(j.world.logs[spec.Name])
		}
	}
	if j.world.task != nil {
		l.expectTailsLocked()
	}
	l.noteLocked("open", fmt.Sprintf("%s, marks %v, configured is %v", strings.Join(at, ", "), marks, l.spec.streams()))
}

// arranged reads what streams have inherited of each other, and who was absent. A life that ends before leaves the
// state somewhere on the way.
func (j *judge) arranged(l *life, store *checkpoint.Store) {
	j.world.mu.Lock()
	defer j.world.mu.Unlock()
	if l.dead {
		return
	}
	l.arranged = true
	for name := range l.base {
		found, err := readStream(store, name)
		if err != nil {
			j.world.violateLocked("I5", "the state of %s cannot be read: %v", name, err)
			return
		}
		l.base[name] = found
	}
	if l.isLeader() {
		j.saved = maps.Clone(l.base)
	}
	j.leads(l)
	absences, err := store.Absences()
	if err != nil {
		j.world.violateLocked("I5", "the absences cannot be read: %v", err)
	}
	for _, a := range absences {
		l.missed[a.Subscription] = true
	}
}

func readStream(store *checkpoint.Store, name string) (*savedStream, error) {
	position, _, err := store.Position(name)
	found := &savedStream{position: position, inventory: map[string]string{}}
	for entry, scanErr := range store.Scan(name, "") {
		if scanErr != nil {
			return nil, scanErr
		}
		found.inventory[entry.Key.String()] = entry.UID + "@" + entry.ResourceVersion
	}
	return found, err
}

// possible says whether the state is what the life before may have left.
func (j *judge) possible(before *life, was, found *savedStream, name string) bool {
	at := &savedStream{position: was.position, inventory: maps.Clone(was.inventory)}
	var r streamRecord
	if before != nil && before.streams[name] != nil {
		r = *before.streams[name]
	} else if before != nil && !found.position.Configured() {
		at.position = at.position.Leave()
	}
	return found.isBehind(at, r.received, r.committed)
}

// isBehind says whether the state is the one before with some of the records applied, at least so many.
func (s *savedStream) isBehind(before *savedStream, records []*change.Record, least int) bool {
	for k := 0; ; k++ {
		if k >= least && before.position == s.position && maps.Equal(before.inventory, s.inventory) {
			return true
		}
		if k == len(records) {
			return false
		}
		if records[k].Seq > 0 { // it was in line
			before.apply(records[k])
		}
	}
}

// apply does to the state what a saved record does.
func (s *savedStream) apply(rec *change.Record) {
	if rec.Position != (change.Position{}) {
		s.position = rec.Position
	}
	switch {
	case rec.Sink != "":
	case slices.Contains([]change.Op{change.Added, change.Updated, change.Replaced, change.Sync}, rec.Op):
		s.inventory[rec.Key.String()] = rec.UID + "@" + rec.ResourceVersion
	case rec.Op == change.Deleted:
		delete(s.inventory, rec.Key.String())
	}
}

// afterLife judges how a life ended: an orderly stop leaves nothing behind, or says what (I7).
func (j *judge) afterLife(l *life) {
	w := j.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.opened {
		w.previous = l
	}
	if l.crashed {
		return
	}
	var left *pipeline.LeftError
	var full *disk.FullError
	switch {
	case l.late(), l.fenced, errors.As(l.err, &left), errors.As(l.err, &full) && l.wasFull, errors.Is(l.err, errBroken):
	case l.err != nil:
		w.violateLocked("I7", "life %d ends with %v", l.number, l.err)
	default:
		j.allSaved(l)
	}
}

// allSaved judges a stop in peace: what came in line is saved.
func (j *judge) allSaved(l *life) {
	for _, r := range l.streams {
		for _, rec := range r.received[r.committed:] {
			if rec.Seq > 0 {
				j.world.violateLocked("I7", "life %d stops in peace, and %s is not saved", l.number, describe(rec))
			}
		}
	}
}

// misses says whether the sink was absent from the stream in this life, for a while.
func (l *life) misses(sinkName string, stream *change.Stream) bool {
	return l.absent[sinkName] || l.missed[checkpoint.Subscription{Sink: sinkName, Stream: stream.String()}]
}

// wants says whether the sink is to get the record.
func (l *life) wants(spec sinkSpec, rec *change.Record) bool {
	return l.has(spec.Name) && spec.takes(rec.Stream.Resource.Name) && (rec.Sink == "" || rec.Sink == spec.Name) && rec.Op != change.Bookmark
}

// upToDate says whether the state knows the newest of what the sinks have. An etcd that is restored to what the state
// knows, while a sink's log is ahead of it, is not noticed: the log alone was in the future.
func (j *judge) upToDate(l *life) bool {
	for _, ev := range j.world.server.etcd.history {
		if change.CompareVersions(strconv.Itoa(ev.rev), j.positionOf(l, ev.resource)) > 0 {
			return false // it may be on its way
		}
	}
	for _, g := range j.world.logs {
		for _, m := range g.all() {
			part := strings.Split(m.id, "/")
			if change.CompareVersions(part[5], j.positionOf(l, part[1])) > 0 {
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
		at, _ := strconv.Atoi(j.positionOf(l, stream)) // 0 where there is none
		least = min(least, at)
	}
	return least
}

// positionOf is what the life, or the one before if it has not begun, is known to have saved of the stream.
func (j *judge) positionOf(l *life, stream string) string {
	position := j.saved[stream].position.ResourceVersion
	if !l.opened {
		l = j.world.previous
	}
	if l == nil {
		return position
	}
	r := l.streams[stream]
	if r == nil {
		return position
	}
	for _, rec := range r.received[:r.committed] {
		if rec.Position.ResourceVersion != "" {
			position = rec.Position.ResourceVersion
		}
	}
	return position
}
