package listener

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint"
)

type (
	History    = checkpoint.History
	Point      = checkpoint.Point
	Object     = checkpoint.Object
	Row        = checkpoint.Row
	Item       = checkpoint.Item
	Scope      = checkpoint.Scope
	Saved      = checkpoint.Saved
	Place      = checkpoint.Place
	Places     = checkpoint.Places
	Comparison = checkpoint.Comparison
	Kind       = checkpoint.Kind
)

const (
	Others   = checkpoint.Others
	Told     = checkpoint.Told
	Sync     = checkpoint.Sync
	Bookmark = checkpoint.Bookmark
	Gap      = checkpoint.Gap
	Begin    = checkpoint.Begin
	End      = checkpoint.End
)

// A world is random: an API server with a short history, sinks with logs of several partitions, and an exporter that is
// killed, reconfigured and put back. What decides is the package's; the world only carries items to and fro. The judge
// reads the logs and the server's events, and nothing else.

var (
	worlds  = flag.Int("worlds", 1000, "how many worlds are played")
	first   = flag.Int64("first", 1, "the seed of the first world")
	verbose = flag.Bool("story", false, "say what happens")
	without = flag.String("without", "", "a rule that is left out")
)

const resource = "pods"

// keys are the objects; the part before the slash is the namespace.
var keys = keysOf("x/a", "x/b", "y/c", "y/d", "z/e", "w/f")

func covers(s Scope, namespace string) bool { return s == Others || string(s) == namespace }

type object struct {
	uid     string
	version int
}

type event struct {
	at   Point
	key  change.Key
	uid  string
	gone bool
}

func version(v int) string { return strconv.Itoa(v) }
func number(p Point) int   { n, _ := strconv.Atoi(p.Version); return n }
func (s *server) now() Point {
	return Point{History: s.history, Version: version(s.version)}
}

type server struct {
	r               *rand.Rand
	history         History
	version, oldest int
	objects         map[change.Key]object
	events, all     []event
	uids            int
	backup          map[change.Key]object
	backupVersion   int
}

func (s *server) change() {
	s.version += 1 + s.r.Intn(2)
	if len(s.objects) > 1 && s.r.Float64() < .1 { // several deletes share a version
		living := sortedKeys(s.objects)
		s.r.Shuffle(len(living), func(i, j int) { living[i], living[j] = living[j], living[i] })
		for _, key := range living[:2] {
			s.note(key, s.objects[key].uid, true)
			delete(s.objects, key)
		}
		return
	}
	key := keys[s.r.Intn(len(keys))]
	was, exists := s.objects[key]
	switch {
	case exists && s.r.Float64() < .4:
		delete(s.objects, key)
		s.note(key, was.uid, true)
		return
	case !exists:
		s.uids++
		was.uid = "u" + strconv.Itoa(s.uids)
	}
	s.objects[key] = object{was.uid, s.version}
	s.note(key, was.uid, false)
}

func sortedKeys[V any](m map[change.Key]V) []change.Key {
	return slices.SortedFunc(maps.Keys(m), func(a, b change.Key) int { return cmp.Compare(a.String(), b.String()) })
}

func (s *server) note(key change.Key, uid string, gone bool) {
	e := event{s.now(), key, uid, gone}
	s.events, s.all = append(s.events, e), append(s.all, e)
}

func (s *server) compact() {
	s.oldest += s.r.Intn(s.version - s.oldest + 1)
	s.events = slices.DeleteFunc(s.events, func(e event) bool { return number(e.at) <= s.oldest })
}

func (s *server) save() { s.backup, s.backupVersion = maps.Clone(s.objects), s.version }

func (s *server) restore() {
	if s.backup == nil {
		return
	}
	s.version, s.objects = s.backupVersion, maps.Clone(s.backup)
	s.history++
	s.events, s.oldest = nil, s.version
}

// slot is an item in a queue or in a log.
type slot struct {
	Item
	onDisk bool // it is in the spool
	has    bool // the log has it
	flight bool
	mark   int
}

func (s *slot) id() string {
	id := fmt.Sprint(s.Kind, s.At, s.Key, s.UID, s.Gone, s.Comparison.ID)
	if s.Kind == Gap || s.Kind == Begin || s.Kind == End {
		id += string(s.Scope)
	}
	return id
}

type log struct {
	name            int
	coalesce, spool bool
	parts           int
	slots           []slot
	late            []slot        // a killed process' last words: the network still has them, and they fit behind what is there alone
	from            map[int]Point // of a gap, by its place
}

// disk is what is saved of one sink: the fold of its log, and on top of that what its spool says.
type disk struct {
	Saved
	rows  memory
	spool []slot
	above *disk // of the spool; nil is that it is empty
}

func (d *disk) clone() *disk {
	c := &disk{Saved: Saved{Mark: d.Mark, Places: map[string]Places{}}, rows: maps.Clone(d.rows), spool: slices.Clone(d.spool)}
	for resource, places := range d.Places {
		c.Places[resource] = maps.Clone(places)
	}
	if d.above != nil {
		c.above = d.above.clone()
	}
	return c
}

// given is what the sink was given, with its spool.
func (d *disk) given() *disk {
	if d.above != nil {
		return d.above
	}
	return d
}

// spooled makes an item part of what the spool says.
func (d *disk) spooled(i *Item) {
	if d.above == nil {
		d.above = d.clone()
		d.above.spool = nil
	}
	check(d.above.Apply(i, d.above.rows))
}

// merge makes what the spool said part of the fold, where it is empty.
func (d *disk) merge() {
	if d.above == nil || len(d.spool) > 0 {
		return
	}
	for of, row := range d.above.rows {
		if row.At.After(d.rows[of].At) {
			d.rows[of] = row
		}
	}
	maps.Copy(d.Places, d.above.Places)
	d.above = nil
}

func (d *disk) mark() int { n, _ := strconv.Atoi(d.Mark); return n }

type memory map[Object]Row

func (m memory) Row(of Object) (Row, error) { return m[of], nil }

func (m memory) Put(of Object, row Row) error {
	if m[of] = row; !row.Known() {
		delete(m, of)
	}
	return nil
}

func (m memory) Passed(resource, namespace string, upTo Point, keeps func(string) bool) error {
	maps.DeleteFunc(m, func(of Object, row Row) bool {
		mine := of.Key.Namespace == namespace || namespace == Others && !keeps(of.Key.Namespace)
		return mine && of.Resource == resource && row.Gone && !row.At.After(upTo)
	})
	return nil
}

// line is a common watch of each stream: its version, and what it has seen of it.
type line map[Scope]*stand

type stand struct {
	at   int
	seen []event
}

type sinkRun struct {
	log    *log
	disk   *disk
	f      *Follower
	world  *world
	queue  []*slot
	acked  []*slot
	line   line
	aside  bool
	reader map[string]*reading // by comparison
	doubt  bool
	since  int
	opened int  // the length of the log when it was opened
	over   bool // somebody has written there since
}

type reading struct {
	list     Point
	objects  map[change.Key]object
	keys     []change.Key
	at       int
	suspects []change.Key
}

type world struct {
	r       *rand.Rand
	server  *server
	ids     int
	logs    []*log
	disks   map[int]*disk
	old     []map[int]*disk
	runs    map[int]*sinkRun
	line    line
	history History // that is read, 0 is none
	sinks   []int   // that are configured
	streams []Scope
	stray   error // what was told beside the configuration

	back, restores, losses, scopes, asides, hangs bool
}

func newWorld(seed int64) *world {
	r := rand.New(rand.NewSource(seed))
	w := &world{
		r: r, server: &server{r: r, history: 1, version: 10, oldest: 10, objects: map[change.Key]object{}},
		disks: map[int]*disk{}, runs: map[int]*sinkRun{}, streams: []Scope{Others},
		back: r.Float64() < .4, restores: r.Float64() < .3, losses: r.Float64() < .3, scopes: r.Float64() < .5, asides: r.Float64() < .5, hangs: r.Float64() < .3,
	}
	for i := range 1 + r.Intn(3) {
		w.logs = append(w.logs, &log{name: i, coalesce: r.Float64() < .25, spool: r.Float64() < .4 || w.hangs, parts: 1 + r.Intn(3), from: map[int]Point{}})
	}
	return w
}

func (w *world) on(rule string) bool { return rule != *without }

func (w *world) say(what ...any) {
	if *verbose {
		fmt.Fprintln(os.Stderr, what...)
	}
}

// id is of the next comparison.
func (w *world) id(version string) string {
	w.ids++
	return version + "." + strconv.Itoa(w.ids)
}

// wire is the item's id as a log has it: all that can be folded.
func wire(i *Item) string {
	id := change.ID{
		Cluster: "0b6f3c1e", Resource: i.Resource, Key: i.Key, UID: i.UID, ResourceVersion: i.At.Version, Snapshot: i.Comparison.ID,
	}
	if i.At.History > 1 {
		id.Cluster = change.NewEpoch(id.Cluster, int64(i.At.History))
	}
	switch i.Kind {
	case Told:
		if id.Op = change.Updated; i.Gone {
			id.Op = change.Deleted
		}
	case Sync:
		id.Op = change.Sync
	case Gap:
		id.Op = change.Gap
	case Begin:
		id.Op = change.SnapshotBegin
	case End:
		id.Op = change.SnapshotEnd
	}
	if i.Key.Name == "" && i.Scope != Others {
		id.Key.Namespace = string(i.Scope)
	}
	return id.String()
}

// read is the item that the log's id says.
func read(text string) Item {
	id, err := change.ParseID(text)
	check(err)
	item, is := checkpoint.ItemOf(&id)
	if !is {
		panic(text)
	}
	return item
}

func (w *world) running() (all []*sinkRun) {
	for _, l := range w.logs {
		if run := w.runs[l.name]; run != nil {
			all = append(all, run)
		}
	}
	return all
}

// newest is what the sink was told last of the object, also by what is on its way.
func (run *sinkRun) newest(of Object) Row {
	row := run.disk.given().rows[of]
	for _, s := range slices.Concat(run.acked, run.queue) {
		if s.Kind == Told && s.Object() == of && !s.onDisk && !row.At.After(s.At) {
			row = Row{At: s.At, UID: s.UID, Gone: s.Gone}
		}
	}
	return row
}

// open opens the sink.
func (w *world) open(l *log) {
	d := w.disks[l.name]
	if d == nil {
		d = &disk{Saved: Saved{Places: map[string]Places{}}, rows: memory{}}
		w.disks[l.name] = d
	}
	if len(l.slots) < d.mark() && w.on("recall") {
		w.say("lost", l.name)
		d.rows, d.spool, d.above = memory{}, nil, nil
		d.MarkLost(true)
		for i := range l.slots {
			if item := read(wire(&l.slots[i].Item)); item.Kind == Told {
				check(d.Fold(&item, d.rows))
			}
		}
		d.Mark = strconv.Itoa(len(l.slots))
	}
	tail := l.slots[min(d.mark(), len(l.slots)):]
	inLog, first, other := map[string]bool{}, map[string]bool{}, false
	for i := range d.spool[:min(len(d.spool), atOnce)] {
		first[d.spool[i].id()] = true
	}
	for i := range tail {
		id := tail[i].id()
		inLog[id], other = true, other || !first[id]
	}
	for i := range tail {
		s := read(wire(&tail[i].Item))
		if !w.on("fold") || s.Kind != Told && !w.on("frames") {
			continue
		}
		check(d.Fold(&s, d.rows))
	}
	d.Mark = strconv.Itoa(len(l.slots))
	if other && len(d.spool) > 0 && w.on("otherwise") {
		d.spool, d.above = nil, nil
	}
	run := &sinkRun{world: w, log: l, disk: d, reader: map[string]*reading{}, opened: len(l.slots)}
	var left []slot
	for _, s := range d.spool {
		if !w.on("spooltail") || !inLog[s.id()] {
			s.onDisk, s.has, s.flight, s.mark = true, false, false, 0
			left = append(left, s)
		}
	}
	d.spool = left
	d.merge()
	for i := range left {
		s := left[i]
		run.queue = append(run.queue, &s)
	}
	run.f = NewFollower(&d.given().Saved, w.id)
	var ways []Way
	for _, scope := range w.streams {
		ways = append(ways, Way{Resource: resource, Scope: scope})
	}
	for _, way := range run.f.Left(ways) {
		run.frames(run.f.Leave(way))
	}
	w.runs[l.name] = run
	w.say("open", l.name, d.Places[resource], d.rows, len(d.spool))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// put queues the item.
func (run *sinkRun) put(i Item) {
	if w := run.world; (i.Kind == Told || i.Kind == Sync) && !slices.ContainsFunc(w.streams, func(s Scope) bool { return covers(s, i.Key.Namespace) }) {
		w.stray = fmt.Errorf("sink %d is told of %v, which is not configured", run.log.name, i)
	}
	if run.log.coalesce && (i.Kind == Told) {
		run.queue = slices.DeleteFunc(run.queue, func(q *slot) bool {
			return (q.Kind == Told || q.Kind == Sync) && q.Key == i.Key && !q.onDisk && !q.flight && !(q.Gone && q.UID != i.UID)
		})
	}
	run.queue = append(run.queue, &slot{Item: i})
}

func (run *sinkRun) frames(frames []Item) {
	for _, frame := range frames {
		run.put(frame)
	}
}

func (w *world) fresh() line {
	l := line{}
	for _, s := range w.streams {
		l[s] = &stand{at: w.server.version}
	}
	return l
}

func (w *world) begin() {
	w.history = w.server.history
	w.line = w.fresh()
	for _, run := range w.running() {
		if run.aside {
			w.follow(run, w.fresh())
		} else {
			w.follow(run, w.line)
		}
	}
}

func (w *world) follow(run *sinkRun, l line) {
	run.line, run.reader = l, map[string]*reading{}
	for _, scope := range w.streams {
		standing := Standing{Now: w.server.now(), Forgot: version(w.server.oldest)}
		frames := run.f.Begin(Way{Resource: resource, Scope: scope}, standing)
		w.say("begin", run.log.name, scope, frames)
		run.frames(frames)
		if !w.on("resume") && len(frames) == 0 {
			for _, c := range run.f.Comparisons(Way{Resource: resource, Scope: scope}) {
				run.f.End(resource, c, checkpoint.Point{})
			}
		}
		from := number(run.f.From(Way{Resource: resource, Scope: scope}))
		if w.on("lowest") {
			l[scope].at = min(l[scope].at, from)
		} else {
			l[scope].at = max(l[scope].at, from)
		}
	}
}

func (w *world) watch(all bool) {
	var aside []*sinkRun
	for _, run := range w.running() {
		if run.aside {
			aside = append(aside, run)
		}
	}
	if w.history != 0 && (all || len(aside) == 0 || w.r.Float64() < .6) {
		w.watchOne(w.line, w.streams[w.r.Intn(len(w.streams))])
	}
	if !all && len(aside) > 0 {
		aside = []*sinkRun{aside[w.r.Intn(len(aside))]}
	}
	for _, run := range aside {
		if w.history == 0 {
			return
		}
		w.watchOne(run.line, w.streams[w.r.Intn(len(w.streams))])
		if w.mayJoin(run) {
			w.say("join", run.log.name)
			run.line, run.aside = w.line, false
		}
	}
}

// mayJoin says whether the sink was given all that the common watch has brought.
func (w *world) mayJoin(run *sinkRun) bool {
	for scope, common := range w.line {
		if run.line[scope] == nil || w.on("join") && !MayJoin(run.f.From(Way{Resource: resource, Scope: scope}), Point{History: w.history, Version: version(common.at)}) {
			return false
		}
	}
	return true
}

func (w *world) watchOne(l line, scope Scope) {
	s, stand := w.server, l[scope]
	if w.history != s.history {
		w.begin()
		return
	}
	var runs []*sinkRun
	for _, run := range w.running() {
		if fmt.Sprintf("%p", run.line) == fmt.Sprintf("%p", l) {
			runs = append(runs, run)
		}
	}
	from := stand.at
	if len(stand.seen) > 0 {
		from--
	}
	if from < s.oldest {
		w.say("watch lost")
		if fmt.Sprintf("%p", l) == fmt.Sprintf("%p", w.line) {
			w.begin()
		} else {
			w.follow(runs[0], w.fresh())
		}
		return
	}
	at := slices.IndexFunc(s.events, func(e event) bool {
		v := number(e.at)
		return covers(scope, e.key.Namespace) && (v > stand.at || v == stand.at && len(stand.seen) > 0 && !slices.Contains(stand.seen, e))
	})
	if at < 0 {
		*stand = standAt(s.version)
		for _, run := range runs {
			w.bookmark(run, scope, s.now())
		}
		return
	}
	e := s.events[at]
	if v := number(e.at); v == stand.at {
		stand.seen = append(stand.seen, e)
	} else {
		stand.at, stand.seen = v, []event{e}
	}
	for _, run := range runs {
		w.offer(run, scope, e)
	}
}

func standAt(v int) stand { return stand{at: v} }

func (w *world) offer(run *sinkRun, scope Scope, e event) {
	i := Item{Kind: Told, Resource: resource, Scope: scope, At: e.at, Key: e.key, UID: e.uid, Gone: e.gone}
	as, last, err := run.f.Offer(&i, Way{Resource: resource, Scope: scope}, func() (Row, error) { return run.newest(i.Object()), nil })
	check(err)
	became := []string{"skipped", "moved", "taken", "replaces another"}[as]
	w.say("offer to", run.log.name, "of", scope, e, "is", became, "and moves it to", i.Given, "; it was told last", last)
	switch as {
	case Moved:
		run.put(Item{Kind: Bookmark, Resource: resource, Scope: scope, Given: i.Given})
	case Replaces:
		run.put(Deleted(i.Object(), scope, last, e.at.Below()))
		fallthrough
	case Taken:
		run.put(i)
	}
}

func (w *world) bookmark(run *sinkRun, scope Scope, to Point) {
	run.f.Bookmark(Way{Resource: resource, Scope: scope}, to)
	run.put(Item{Kind: Bookmark, Resource: resource, Scope: scope, Given: to})
}

func (w *world) read(run *sinkRun) {
	for _, scope := range w.streams {
		for _, c := range run.f.Comparisons(Way{Resource: resource, Scope: scope}) {
			w.readOne(run, scope, c)
		}
	}
}

func (w *world) readOne(run *sinkRun, scope Scope, c Comparison) {
	if w.history != w.server.history || run.line[scope] == nil {
		return
	}
	rd := run.reader[c.ID]
	if rd == nil {
		rd = &reading{list: w.server.now(), objects: map[change.Key]object{}}
		all := map[change.Key]bool{}
		for key, o := range w.server.objects {
			if covers(Scope(c.Namespace), key.Namespace) {
				rd.objects[key], all[key] = o, true
			}
		}
		for of := range run.disk.given().rows {
			all[of.Key] = true
		}
		for _, s := range slices.Concat(run.acked, run.queue) {
			if s.Kind == Told {
				all[s.Key] = true
			}
		}
		rd.keys = slices.DeleteFunc(sortedKeys(all), func(k change.Key) bool { return !covers(Scope(c.Namespace), k.Namespace) })
		run.reader[c.ID] = rd
		w.say("list", run.log.name, c, rd.list, rd.objects)
		return
	}
	if rd.at < len(rd.keys) {
		for _, key := range rd.keys[rd.at:min(rd.at+2, len(rd.keys))] {
			w.compare(run, scope, c, rd, key)
		}
		rd.at += 2
		return
	}
	var open []change.Key
	for _, key := range rd.suspects {
		of := Object{Resource: resource, Key: key}
		last := run.newest(of)
		switch JudgeMissing(rd.list, rd.list, run.f.Passed(resource, key.Namespace), last) {
		case Open:
			open = append(open, key)
		case Ended:
			i := Deleted(of, scope, last, AsOf(rd.list, last))
			run.f.Tell(&i)
			run.put(i)
		}
	}
	if rd.suspects = open; len(open) > 0 || rd.list.After(run.f.From(Way{Resource: resource, Scope: Scope(c.Namespace)})) {
		return
	}
	run.put(run.f.End(resource, c, checkpoint.Point{}))
	delete(run.reader, c.ID)
	run.frames(run.f.Due(Way{Resource: resource, Scope: scope}))
}

func (w *world) compare(run *sinkRun, scope Scope, c Comparison, rd *reading, key change.Key) {
	of := Object{Resource: resource, Key: key}
	last := run.newest(of)
	listed, is := rd.objects[key]
	if !is {
		if last.Exists() {
			rd.suspects = append(rd.suspects, key)
		}
		return
	}
	i := Item{Kind: Told, Resource: resource, Scope: scope, At: Point{History: w.history, Version: version(listed.version)}, Key: key, UID: listed.uid}
	switch Judge(&Listed{listed.uid, i.At, rd.list, run.f.Passed(resource, key.Namespace)}, last) {
	case Unchanged:
		if c.Full {
			sync := i
			sync.Kind, sync.Comparison = Sync, c
			run.put(sync)
		}
	case Another:
		d := Deleted(of, scope, last, i.At.Below())
		run.f.Tell(&d)
		run.put(d)
		fallthrough
	case Changed:
		run.f.Tell(&i)
		run.put(i)
	}
}

// atOnce is how many are written at once, at most.
const atOnce = 15

// write writes a batch, which may fail after a part of each partition.
func (w *world) write(run *sinkRun, fails float64, most int) {
	if len(run.queue) == 0 {
		return
	}
	if slices.ContainsFunc(run.acked, func(s *slot) bool { return s.onDisk }) {
		return // what comes next is taken when this is saved
	}
	n := 1 + w.r.Intn(most)
	l := run.log
	if run.over { // it was opened too early
		delete(w.runs, l.name)
		return
	}
	l.late = nil
	if run.doubt { // the same batch again
		n = 0
		for _, s := range run.queue {
			if s.flight {
				n++
			}
		}
		have := map[string]bool{}
		for i := range l.slots[min(run.since, len(l.slots)):] {
			have[l.slots[run.since+i].id()] = true
		}
		run.doubt = false
		for _, s := range run.queue {
			s.has = s.has || have[s.id()]
		}
	} else {
		run.since = len(l.slots)
	}
	n = min(n, len(run.queue))
	if other := slices.IndexFunc(run.queue[:n], func(s *slot) bool { return !s.onDisk }); other > 0 {
		n = other // what comes from disk is written by itself
	}
	batch := run.queue[:n]
	failed := w.r.Float64() < fails
	var segments [][]*slot
	var segment []*slot
	for _, s := range batch {
		if s.Kind == Bookmark || s.has {
			continue
		}
		if (s.Kind == Gap || s.Kind == Begin || s.Kind == End) && w.on("order") {
			segments = append(segments, segment, []*slot{s})
			segment = nil
			continue
		}
		segment = append(segment, s)
	}
	for _, segment := range append(segments, segment) {
		if !w.writeSegment(l, segment, failed) {
			break
		}
	}
	if failed {
		run.doubt = true
		for _, s := range batch {
			s.flight = true
		}
		return
	}
	for _, s := range batch {
		s.mark = len(l.slots)
	}
	run.acked = append(run.acked, batch...)
	run.queue = slices.Clone(run.queue[n:])
}

// writeSegment writes to each partition, as far as it comes.
func (w *world) writeSegment(l *log, segment []*slot, fails bool) (whole bool) {
	parts := make([][]*slot, l.parts)
	for _, s := range segment {
		p := 0
		if s.Kind == Told || s.Kind == Sync {
			p = int(s.Key.Name[0]) * 7 % l.parts
		}
		parts[p] = append(parts[p], s)
	}
	var order []int
	whole = true
	for p := range parts {
		n := len(parts[p])
		if fails {
			n = w.r.Intn(n + 1)
		}
		whole = whole && n == len(parts[p])
		for range n {
			order = append(order, p)
		}
	}
	w.r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	at := make([]int, l.parts)
	for _, p := range order {
		s := *parts[p][at[p]]
		s.Given, s.onDisk, s.has, s.flight, s.mark = Point{}, false, false, false, 0
		l.slots = append(l.slots, s)
		at[p]++
	}
	return whole
}

func (w *world) commit(run *sinkRun) {
	if run.doubt {
		return
	}
	defer w.hear(run)
	d := run.disk
	for _, s := range run.acked {
		if !s.onDisk {
			if d.above != nil {
				check(d.above.Apply(&s.Item, d.above.rows))
			}
			check(d.Apply(&s.Item, d.rows))
		}
		d.Mark = strconv.Itoa(s.mark)
		if s.onDisk {
			id, item := s.id(), s.Item
			if s.Kind != Bookmark {
				item = read(wire(&s.Item))
			}
			check(d.Fold(&item, d.rows))
			d.spool = slices.DeleteFunc(d.spool, func(x slot) bool { return x.id() == id })
		}
	}
	run.acked = nil
	if run.log.spool && w.r.Float64() < .5 {
		for _, s := range run.queue {
			if s.onDisk {
				continue
			}
			d.spooled(&s.Item)
			if s.onDisk = true; s.Kind != Bookmark {
				d.spool = append(d.spool, *s)
			}
		}
		run.queue = slices.DeleteFunc(run.queue, func(s *slot) bool { return s.Kind == Bookmark })
	}
	d.merge()
	check(d.DropPassed(resource, d.rows))
	w.old = append(w.old, w.copyOf(w.disks))
	w.old = w.old[max(0, len(w.old)-12):]
}

// hear brings a killed process' last words, where nothing was written since.
func (w *world) hear(run *sinkRun) {
	l := run.log
	if len(l.late) == 0 || run.opened != len(l.slots) || w.r.Float64() < .5 {
		return
	}
	for _, s := range l.late {
		s.Given, s.onDisk, s.has, s.flight, s.mark = Point{}, false, false, false, 0
		l.slots = append(l.slots, s)
	}
	l.late, run.over = nil, true
	w.say("last words", l.name, len(l.slots)-run.opened)
}

func (w *world) copyOf(disks map[int]*disk) map[int]*disk {
	all := map[int]*disk{}
	for name, d := range disks {
		all[name] = d.clone()
	}
	return all
}

func (w *world) start() {
	for _, l := range w.logs {
		if slices.Contains(w.sinks, l.name) {
			w.open(l)
		}
	}
	if len(w.runs) > 0 {
		w.begin()
	}
}

func (w *world) crash() {
	w.say("crash")
	for _, run := range w.running() {
		if w.r.Float64() < .7 {
			w.write(run, .7, atOnce)
		}
		if n := min(len(run.queue), atOnce); run.log.parts == 1 && w.r.Float64() < .3 {
			run.log.late = nil
			for _, s := range run.queue[:n] {
				if s.Kind != Bookmark && !s.has && !run.doubt && !run.over {
					run.log.late = append(run.log.late, *s)
				}
			}
		}
	}
	w.runs, w.line, w.history = map[int]*sinkRun{}, nil, 0
}

func (w *world) choose(share float64) {
	w.sinks = nil
	for _, l := range w.logs {
		if w.r.Float64() < share {
			w.sinks = append(w.sinks, l.name)
		}
	}
	if len(w.sinks) == 0 {
		w.sinks = []int{0}
	}
}

func (w *world) play(steps int) error {
	w.choose(.8)
	w.start()
	for range steps {
		w.step()
	}
	if w.r.Float64() < .5 {
		w.crash()
	}
	if !slices.Equal(w.streams, []Scope{Others}) {
		w.crash()
		w.streams = []Scope{Others}
	}
	for _, l := range w.logs {
		if w.runs[l.name] == nil {
			w.open(l)
		}
	}
	w.begin()
	for range 600 {
		w.watch(true)
		for _, run := range w.running() {
			w.read(run)
			w.write(run, 0, 5)
			w.commit(run)
		}
		for _, l := range w.logs {
			if l.late = nil; w.runs[l.name] == nil { // last words have come before its first ones
				w.open(l)
				w.begin()
			}
		}
	}
	return cmp.Or(w.stray, w.judge())
}

func (w *world) step() {
	r, runs := w.r, w.running()
	x := r.Float64()
	one := func() *sinkRun { return runs[r.Intn(len(runs))] }
	switch {
	case x < .22:
		w.server.change()
	case x < .46:
		w.watch(false)
	case len(runs) == 0 && x < .90:
	case x < .62:
		w.read(one())
	case x < .80:
		if !w.hangs || r.Float64() < .2 { // else much goes to disk
			w.write(one(), .15, 5)
		}
	case x < .90:
		w.commit(one())
	case x < .92:
		w.server.compact()
	case x < .925:
		if len(runs) > 0 && r.Float64() < .5 {
			w.begin()
		}
	case x < .935 && len(runs) > 0: // a sink is full: it goes on from its position, with a watch of its own
		run := one()
		if w.asides && !run.aside && w.history == w.server.history {
			run.aside = true
			w.say("aside", run.log.name)
			w.follow(run, w.fresh())
		}
	case x < .945 && len(runs) > 0: // a sink is stopped, or is back
		w.halt(one())
	case x < .955:
		for _, l := range w.logs {
			if slices.Contains(w.sinks, l.name) && w.runs[l.name] == nil {
				w.open(l)
				w.begin()
			}
		}
	case x < .965 && len(runs) > 0: // a full snapshot is asked for, of all or of one namespace
		run, scope := one(), w.streams[r.Intn(len(w.streams))]
		of := scope
		if scope == Others && r.Float64() < .5 {
			of = "x"
		}
		if w.history == w.server.history && run.f.From(Way{Resource: resource, Scope: scope}).History == w.history {
			run.f.Ask(Way{Resource: resource, Scope: of}, change.Requested)
			for d := run.disk; d != nil; d = d.above {
				if d.Places[resource] == nil {
					d.Places[resource] = Places{}
				}
				Ask(d.Places[resource], of, change.Requested)
			}
			w.follow(run, run.line)
		}
	case x < .975 && w.restores:
		if r.Float64() < .6 {
			w.server.save()
		} else {
			w.server.restore()
		}
	case x < .99:
		w.restart()
	}
}

func (w *world) halt(run *sinkRun) {
	delete(w.runs, run.log.name)
	w.say("halt", run.log.name)
	if n := len(run.log.slots); w.losses && w.r.Float64() < .4 {
		run.log.slots = run.log.slots[:n/2+w.r.Intn(n-n/2+1)]
		run.log.late = nil
		w.old, w.back = nil, false // I11 does not cover a log that lost records and has grown since
	}
}

func (w *world) restart() {
	w.crash()
	if w.back && len(w.old) > 0 && w.r.Float64() < .5 {
		w.disks, w.old = w.copyOf(w.old[w.r.Intn(len(w.old))]), nil
		w.say("state put back")
	}
	if w.r.Float64() < .3 {
		w.choose(.7)
	}
	if w.scopes && w.r.Float64() < .4 {
		all := [][]Scope{{Others}, {"x"}, {"y"}, {"x", "y"}, {"x", "z"}}
		w.streams = all[w.r.Intn(len(all))]
		w.say("streams", w.streams)
	}
	w.start()
}

// judge reads the logs as a consumer does.
func (w *world) judge() error {
	for _, l := range w.logs {
		run := w.runs[l.name]
		if open := run.f.Comparisons(Way{Resource: resource, Scope: Others}); len(run.queue) > 0 || len(open) > 0 {
			return fmt.Errorf("sink %d is not done: %d queued, comparisons %v", l.name, len(run.queue), open)
		}
		if err := w.judgeLog(l); err != nil {
			return fmt.Errorf("sink %d: %w", l.name, err)
		}
		for of, row := range run.disk.rows {
			if row.Gone {
				return fmt.Errorf("sink %d keeps the tombstone of %v, %v, at %v", l.name, of, row, run.disk.Places)
			}
		}
		if n := len(run.disk.Places[resource]); n != 1 {
			return fmt.Errorf("sink %d keeps %d places: %v", l.name, n, run.disk.Places)
		}
	}
	return nil
}

type ident struct {
	at   Point
	key  change.Key
	uid  string
	gone bool
}

func (w *world) judgeLog(l *log) error {
	fold, last := map[change.Key]event{}, map[change.Key]Point{}
	seen, deleted := map[ident]bool{}, map[ident]bool{}
	var gaps []Item
	began := map[string]Point{}
	for i := range l.slots {
		s := &l.slots[i]
		switch s.Kind {
		case Gap:
			gaps = append(gaps, s.Item)
			fallthrough
		case Begin:
			for _, key := range keys {
				if _, known := began[key.Namespace]; !known && covers(s.Scope, key.Namespace) {
					began[key.Namespace] = s.At
				}
			}
		case Sync:
			if e := fold[s.Key]; e.at != s.At || e.uid != s.UID {
				return fmt.Errorf("sync of what was not told: %v", s)
			}
		case Told:
			id := ident{s.At, s.Key, s.UID, s.Gone}
			if seen[id] {
				return fmt.Errorf("told twice: %v", id)
			}
			seen[id] = true
			of := ident{at: Point{History: s.At.History}, key: s.Key, uid: s.UID}
			if s.Gone && deleted[of] {
				return fmt.Errorf("deleted twice: %v", id)
			}
			deleted[of] = deleted[of] || s.Gone
			if _, is := fold[s.Key]; !s.At.After(last[s.Key]) && (s.At != last[s.Key] || is != s.Gone) {
				return fmt.Errorf("order: %v behind %v", id, last[s.Key])
			}
			last[s.Key] = s.At
			if e, is := fold[s.Key]; is && e.uid != s.UID && !l.coalesce {
				return fmt.Errorf("%v in the place of %v", id, e)
			}
			if fold[s.Key] = (event{s.At, s.Key, s.UID, false}); s.Gone {
				delete(fold, s.Key)
			}
		}
	}
	return w.judgeFold(l, fold, began, seen, gaps)
}

func (w *world) judgeFold(l *log, fold map[change.Key]event, began map[string]Point, seen map[ident]bool, gaps []Item) error {
	for _, key := range keys {
		want, is := w.server.objects[key]
		have, has := fold[key]
		if is != has || is && (have.uid != want.uid || have.at != (Point{History: w.server.history, Version: version(want.version)})) {
			return fmt.Errorf("has %v of %v, the cluster %v", have, key, want)
		}
	}
	if l.coalesce {
		return nil
	}
	for _, e := range w.server.all {
		begin, known := began[e.key.Namespace]
		if !known || !e.at.After(begin) || seen[ident(e)] {
			continue
		}
		if !slices.ContainsFunc(gaps, func(g Item) bool {
			from := g.From
			return covers(g.Scope, e.key.Namespace) && (e.at.After(from) && !e.at.After(g.At) ||
				from.History <= e.at.History && e.at.History < g.At.History && !from.After(e.at))
		}) {
			return fmt.Errorf("silently missing: %v, gaps %v", e, gaps)
		}
	}
	return nil
}

// TestWorldsHaveNoViolation is I1 to I6, I8 and I11 of the state by sink.
func TestWorldsHaveNoViolation(t *testing.T) {
	for seed := *first; seed < *first+int64(*worlds); seed++ {
		if err := newWorld(seed).play(160); err != nil {
			t.Fatalf("world %d (-first %d -worlds 1 -story): %v", seed, seed, err)
		}
	}
}

func keysOf(joined ...string) (keys []change.Key) {
	for _, key := range joined {
		keys = append(keys, change.ParseKey(key))
	}
	return keys
}
