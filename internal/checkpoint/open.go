package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// Open opens the state in the directory and creates what is missing, unless it is opened read-only. It never resets a
// state: one that is damaged, newer, or in use is refused with a *DamagedError, *NewerError or *InUseError, a full
// volume with a *disk.FullError, and a missing state that is opened read-only with ErrNoState. One of an earlier format
// is converted, or refused with an *EarlierError where that cannot be, or where it is opened read-only.
//
// Open gives up when ctx ends; what is still under way then ends by itself, and releases the directory.
func Open(ctx context.Context, dir string, opts Options) (*Store, error) {
	d, err := newDatabase(ctx, dir, opts.withDefaults())
	if err != nil {
		return nil, err
	}
	s := &Store{database: d, spools: spools{database: d, codec: &codec{}, reclaimed: map[string]*reclaimed{}}}
	if err := d.open(ctx, func() error { return inOrder(d.checkFormat, s.convert, s.load, d.record) }); err != nil {
		return nil, err
	}
	return s, nil
}

// convert makes a state of format 1 one of this format, in which each sink has its own rows and places. Nothing may be
// open in it: of what is, it says less than a sink has to know.
//
// The rows are written beside what they are made of, piece by piece (I6), and all takes effect with one last write. So
// a crash leaves a state of format 1, with which either version begins anew.
func (s *Store) convert() error {
	if s.format == formatVersion {
		return nil
	}
	c := &conversion{Store: s, positions: map[string]position{}, taken: map[string][]string{}, places: map[string]Place{}}
	open, err := c.load()
	if err != nil {
		return err
	}
	if s.opts.ReadOnly || len(open) > 0 {
		return &EarlierError{Dir: s.dir, Format: s.format, Open: open}
	}
	s.gate.open() // so many rows are compacted meanwhile
	s.opts.Logger.Info("the saved state is of an earlier version, and is converted", "dir", s.dir, "sinks", len(c.taken), "streams", len(c.positions))
	if err := inOrder(c.rows, c.finish); err != nil {
		return fmt.Errorf("convert state %s from format %d: %w", s.dir, s.format, err)
	}
	s.format = formatVersion
	return nil
}

// conversion is what is known of a state of format 1.
type conversion struct {
	*Store
	positions map[string]position // by stream
	taken     map[string][]string // streams by sink, those of all namespaces first
	places    map[string]Place    // by key
}

// rows gives each sink the rows of its streams. What an earlier conversion has left that was cut short goes before.
// It writes them in the order of their keys, so that no compaction has to bring them into it.
func (c *conversion) rows() error {
	err := c.write(func(r *rows) error {
		for _, table := range []byte{tableRow, tableGrave, tablePlace} {
			r.removeAll([]byte{table})
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, sinkName := range slices.Sorted(maps.Keys(c.taken)) {
		for _, stream := range c.taken[sinkName] {
			namespace, resource, found := strings.Cut(stream, "/")
			if !found {
				namespace, resource = Others, stream
			}
			p := c.positions[stream]
			history := HistoryOf(p.epoch)
			highest, err := c.rowsOf(sinkName, resource, stream, history)
			if err != nil {
				return err
			}
			if change.CompareVersions(p.version, highest) > 0 {
				highest = p.version
			}
			at := p.version
			if !p.complete { // a watch from there on would miss something
				at = change.VersionBelow(at)
			}
			c.places[string(keyOf(tablePlace, sinkName, resource, namespace))] = Place{
				At: Point{history, at}, High: Point{history, highest}, Selection: p.selector,
			}
		}
	}
	return nil
}

// rowsOf gives the sink the stream's rows, and returns the highest version among them.
func (c *conversion) rowsOf(sinkName, resource, stream string, history History) (highest string, err error) {
	prefix := keyOf(tableInventory, stream, "")
	for from := prefix; from != nil && err == nil; {
		err = c.write(func(r *rows) error {
			rest := from
			from = nil
			return c.within(rest, after(prefix), func(key, value []byte) error {
				if from != nil {
					return nil
				}
				if r.of.Len() >= c.opts.piece {
					from = bytes.Clone(key)
					return nil
				}
				uid, version, err := parseEntry(value)
				if err != nil {
					return c.badValue("an object of "+stream, err)
				}
				if change.CompareVersions(version, highest) > 0 {
					highest = version
				}
				of := Object{resource, change.ParseKey(string(key[len(prefix):]))}
				r.setRow(tableRow, sinkName, of, Row{At: Point{history, version}, UID: uid})
				return nil
			})
		})
	}
	return highest, err
}

// finish makes it a state of this format, and gives the space of what it was made of back. What was kept of objects
// goes, too: nobody knows of which version it is. The log of the state has it in the earlier format, so another one
// begins.
func (c *conversion) finish() error {
	histories, err := c.histories()
	if err != nil {
		return err
	}
	stopped, err := c.StoppedSnapshots()
	if err != nil {
		return err
	}
	gone := append(sharedTables(), tableForm, tableObject)
	err = c.write(func(r *rows) error {
		for key, place := range c.places {
			r.set([]byte(key), appendPlace(nil, place))
		}
		r.removeAll([]byte{tableUID})
		for uid, since := range histories {
			r.set(keyOf(tableUID, uid), binary.AppendUvarint(nil, uint64(since)))
		}
		for _, d := range stopped {
			r.remove(pendingKey(&d))
		}
		for _, table := range gone {
			r.removeAll([]byte{table})
		}
		r.remove(keyOf(tableLogged))
		r.set(keyOf(tableFormat), []byte(strconv.Itoa(formatVersion)))
		return nil
	})
	for _, table := range gone {
		if err == nil {
			err = c.excise([]byte{table}, []byte{table + 1})
		}
	}
	return err
}

// histories is for each cluster that was met with which history it was first. Of one that was behind the name for a
// while and is the one of no stream any more, only that it was before is known. The one that is there now is met anew
// where another one was before it, and no stream has begun to read it.
func (c *conversion) histories() (map[string]History, error) {
	uids, err := c.Clusters()
	if err != nil {
		return nil, err
	}
	now, _, err := c.Cluster()
	first := map[string]History{}
	for _, p := range c.positions {
		uid, since := change.ClusterOf(p.epoch), HistoryOf(p.epoch)
		if known, found := first[uid]; uid != "" && (!found || since < known) {
			first[uid] = since
		}
	}
	uids = slices.AppendSeq(uids, maps.Keys(first))
	slices.Sort(uids)
	uids = slices.Compact(uids)
	met := map[string]History{}
	for _, uid := range uids {
		since, found := first[uid]
		switch {
		case uid == "":
		case len(uids) == 1 || !found && uid != now.UID:
			met[uid] = 1
		case found:
			met[uid] = since
		}
	}
	return met, err
}

// EarlierError says that the state is of a format that an earlier version wrote: it is opened read-only, or cannot be
// converted.
type EarlierError struct {
	Dir    string
	Format int
	Open   []string // what stands in the way of a conversion
}

func (e *EarlierError) Error() string {
	text := fmt.Sprintf("open state %s: written by an earlier version of exporter (format %d, this one writes %d): ", e.Dir, e.Format, formatVersion)
	if len(e.Open) == 0 {
		return text + "the next start converts it, and shows it then"
	}
	const most = 4
	open := strings.Join(e.Open[:min(most, len(e.Open))], "; ")
	if more := len(e.Open) - most; more > 0 {
		open += fmt.Sprintf("; and %d more", more)
	}
	return text + "it cannot be converted while something is open in it (" + open +
		"): start the earlier version once more, wait until that is over, and stop it cleanly; or give the state up with: exporter checkpoint reset --state-dir " + e.Dir
}

// The tables of format 1, in which all sinks shared one inventory and one position of each stream.
const (
	tableAbsent       = 'A' // sink, terminator, stream: the sink misses changes of it
	tableReplayBase   = 'B' // sink, terminator, stream: the sink's log is still to be read
	tableEnded        = 'E'
	tableMissed       = 'G' // deletes that a sink is still to be told
	tableInventory    = 'I' // stream, terminator, joined key -> uid, resourceVersion
	tableCarried      = 'K' // sink -> mark, ids of what the log has and the state lacks
	tableFresh        = 'N'
	tablePosition     = 'P' // stream -> complete, resourceVersion, epoch, selector
	tableSubscription = 'S' // sink, terminator, stream: the sink has it
)

// sharedTables are those of format 1. A state of this format has nothing in them.
func sharedTables() []byte {
	return []byte{
		tableAbsent, tableMissed, tableFresh, tableCarried, tableEnded, tableInventory, tableReplayBase, tableSubscription,
		tablePosition,
	}
}

// position is how far all sinks were given a stream.
type position struct {
	version  string
	complete bool // nothing else can come at the version
	epoch    string
	selector string // with what is under way, or was cut off, in front
}

func parsePosition(value []byte) (p position, err error) {
	if len(value) == 0 || value[0] > 1 {
		return p, errValue
	}
	var rest []byte
	p.complete = value[0] == 1
	if p.version, rest, err = cutText(value[1:]); err == nil {
		p.epoch, rest, err = cutText(rest)
	}
	p.selector = string(rest)
	return p, err
}

// isUnderWay says whether the inventory is not that of the position.
func (p *position) isUnderWay() bool {
	const interrupted = "(interrupted)"
	selector := strings.TrimPrefix(p.selector, "(not configured)")
	return strings.HasPrefix(selector, "(initial)") || strings.HasPrefix(selector, "(compared)") || selector == interrupted ||
		p.epoch == interrupted || p.version == ""
}

// load reads the state, and what is open in it.
func (c *conversion) load() (open []string, err error) {
	note := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(open, text) {
			open = append(open, text)
		}
	}
	// names are the sink, and the stream where the table has one.
	each := func(table byte, visit func(names []string, value []byte) error) {
		if err != nil {
			return
		}
		err = c.each([]byte{table}, func(key, value []byte) error {
			names := strings.SplitN(string(key[1:]), string(rune(terminator)), 2)
			err := visit(append(names, ""), value)
			if errors.Is(err, errValue) {
				err = c.badValue(fmt.Sprintf("what table %c has of %s", table, names[0]), err)
			}
			return err
		})
	}
	each(tablePosition, func(names []string, value []byte) error {
		p, err := parsePosition(value)
		if c.positions[names[0]] = p; err == nil && p.isUnderWay() {
			note("a snapshot of %s is under way", names[0])
		}
		return err
	})
	each(tableSubscription, func(names []string, _ []byte) error {
		if _, known := c.positions[names[1]]; known {
			c.taken[names[0]] = append(c.taken[names[0]], names[1])
		}
		return nil
	})
	each(tableCarried, func(names []string, value []byte) error {
		of, _, err := cutText(value)
		if err != nil {
			return err
		}
		mark, _, err := c.get(keyOf(tableMark, names[0]))
		if string(mark) == of {
			note("the log of sink %s is ahead of the state", names[0])
		}
		return err
	})
	each(tableReplayBase, func(names []string, _ []byte) error {
		note("the log of sink %s is still to be read", names[0])
		return nil
	})
	each(tableSpooled, func(names []string, value []byte) error {
		spool, err := parseSpool(value)
		if err == nil && !spool.Empty() {
			note("%d records for sink %s are on disk", spool.Records(), names[0])
		}
		return err
	})
	each(tableAbsent, func(names []string, _ []byte) error {
		note("sink %s misses changes of %s, unless that version forgets it with: exporter checkpoint forget-sink %s",
			names[0], names[1], names[0])
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, err := c.PendingSnapshots()
	for _, d := range all {
		if d.Reason != change.Requested && d.Reason != change.Resync {
			note("sink %s waits for a snapshot of %s (%s)", d.Sink, d.Stream, d.Reason)
		}
	}
	each(tableMissed, func([]string, []byte) error {
		note("deletes are still to be told that a sink has missed")
		return nil
	})
	for _, of := range c.taken {
		slices.SortFunc(of, func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
		})
	}
	return open, err
}
