package checkpoint

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// sharedTables are those of format 1, in which all sinks shared one inventory and one position of each stream. A state
// of this format has nothing in them.
func sharedTables() []byte {
	return []byte{
		tableAbsent, tableMissed, tableFresh, tableCarried, tableEnded, tableInventory, tableReplayBase, tableSubscription,
		tablePosition,
	}
}

// formatOfRows is the format of rows without one: those of a log of the state.
func (d *database) formatOfRows() (int, error) {
	for _, table := range sharedTables() {
		if some, err := d.holds([]byte{table}); err != nil || some {
			return 1, err
		}
	}
	return formatVersion, nil
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
	c := &conversion{Store: s}
	open, err := c.load()
	if err != nil {
		return err
	}
	if s.opts.ReadOnly || len(open) > 0 {
		return &EarlierError{Dir: s.dir, Format: s.format, Open: open}
	}
	s.gate.open() // so many rows are compacted meanwhile
	s.opts.Logger.Info("the saved state is of an earlier version, and is converted", "dir", s.dir, "sinks", len(c.sinks), "streams", len(c.positions))
	if err := inOrder(c.begin, c.rows, c.finish); err != nil {
		return fmt.Errorf("convert state %s from format %d: %w", s.dir, s.format, err)
	}
	s.format = formatVersion
	return nil
}

// conversion is what is known of a state of format 1.
type conversion struct {
	*Store
	positions map[string]change.Position // by stream
	sinks     map[string][]string        // streams by sink, those of all namespaces first
	places    map[string]Place           // by key
}

// load reads the state, and what is open in it.
func (c *conversion) load() (open []string, err error) {
	if c.positions, err = c.Positions(); err != nil {
		return nil, err
	}
	streams, err := c.Streams()
	if err != nil {
		return nil, err
	}
	for _, name := range streams {
		if p := c.positions[name]; p.UnderWay() || p.Epoch == change.Interrupted || p.ResourceVersion == "" {
			open = append(open, "a snapshot of "+name+" is under way")
		}
	}
	subscriptions, err := c.Subscriptions()
	if err != nil {
		return nil, err
	}
	c.sinks, c.places = map[string][]string{}, map[string]Place{}
	for of := range subscriptions {
		if _, known := c.positions[of.Stream]; known {
			c.sinks[of.Sink] = append(c.sinks[of.Sink], of.Stream)
		}
	}
	for _, of := range c.sinks {
		slices.SortFunc(of, func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
		})
	}
	for _, look := range []func() ([]string, error){c.openOfSinks, c.openAbsences, c.openSnapshots, c.openDeletes} {
		more, err := look()
		if err != nil {
			return nil, err
		}
		open = append(open, more...)
	}
	return open, nil
}

// openOfSinks is what is open of the sinks' own logs and queues.
func (c *conversion) openOfSinks() (open []string, err error) {
	known, err := c.Sinks()
	if err != nil {
		return nil, err
	}
	for _, name := range known {
		carried, err := c.Carried(name)
		if err != nil {
			return nil, err
		}
		if len(carried.IDs) > 0 {
			open = append(open, fmt.Sprintf("the log of sink %s is ahead of the state by %d records", name, len(carried.IDs)))
		}
		bases, err := c.ReplayBases(name)
		if err != nil {
			return nil, err
		}
		if len(bases) > 0 {
			open = append(open, fmt.Sprintf("the log of sink %s is still to be read", name))
		}
	}
	return open, c.each([]byte{tableSpooled}, func(key, value []byte) error {
		spool, err := parseSpool(value)
		if err != nil {
			return c.badValue("the spool of sink "+string(key[1:]), err)
		}
		if !spool.Empty() {
			open = append(open, fmt.Sprintf("%d records for sink %s are on disk", spool.Records(), key[1:]))
		}
		return nil
	})
}

// openAbsences is which sinks miss streams.
func (c *conversion) openAbsences() (open []string, err error) {
	all, err := c.Absences()
	for _, a := range all {
		open = append(open, fmt.Sprintf("sink %s misses changes of %s, unless that version forgets it with: exporter checkpoint forget-sink %s",
			a.Sink, a.Stream, a.Sink))
	}
	return open, err
}

// openSnapshots is which snapshots are owed that nobody has asked for.
func (c *conversion) openSnapshots() (open []string, err error) {
	all, err := c.PendingSnapshots()
	for _, d := range all {
		if d.Reason != change.Requested && d.Reason != change.Resync {
			open = append(open, fmt.Sprintf("sink %s waits for a snapshot of %s (%s)", d.Sink, d.Stream, d.Reason))
		}
	}
	return open, err
}

// openDeletes says whether deletes are still to be told that sinks have missed.
func (c *conversion) openDeletes() (open []string, err error) {
	some, err := c.holds([]byte{tableMissed})
	if some {
		open = []string{"deletes are still to be told that a sink has missed"}
	}
	return open, err
}

// begin removes what an earlier conversion has left that was cut short.
func (c *conversion) begin() error {
	return c.write(func(r *rows) error {
		for _, table := range []byte{tableRow, tableGrave, tablePlace} {
			r.removeAll([]byte{table})
		}
		return nil
	})
}

// rows gives each sink the rows of its streams. It writes them in the order of their keys, so that no compaction has to
// bring them into it.
func (c *conversion) rows() error {
	for _, sinkName := range slices.Sorted(maps.Keys(c.sinks)) {
		for _, stream := range c.sinks[sinkName] {
			namespace, resource, found := strings.Cut(stream, "/")
			if !found {
				namespace, resource = Others, stream
			}
			p := c.positions[stream]
			history := HistoryOf(p.Epoch)
			highest, err := c.rowsOf(sinkName, resource, stream, history)
			if err != nil {
				return err
			}
			if change.CompareVersions(p.ResourceVersion, highest) > 0 {
				highest = p.ResourceVersion
			}
			c.places[string(placeKey(tablePlace, sinkName, resource, namespace))] = Place{
				At: Point{history, p.ResumeVersion()}, High: Point{history, highest}, Selection: p.Selector,
			}
		}
	}
	return nil
}

// rowsOf gives the sink the stream's rows, and returns the highest version among them.
func (c *conversion) rowsOf(sinkName, resource, stream string, history History) (highest string, err error) {
	next, stop := iter.Pull2(c.Scan(stream, ""))
	defer stop()
	for more := true; more && err == nil; {
		err = c.write(func(r *rows) error {
			for r.of.Len() < c.opts.piece {
				entry, err, found := next()
				if more = found; err != nil || !found {
					return err
				}
				if change.CompareVersions(entry.ResourceVersion, highest) > 0 {
					highest = entry.ResourceVersion
				}
				r.key = rowKey(r.key[:0], tableRow, sinkName, Object{resource, entry.Key})
				r.value = appendRow(r.value[:0], Row{At: Point{history, entry.ResourceVersion}, UID: entry.UID})
				r.set(r.key, r.value)
			}
			return nil
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
			r.set(uidKey(uid), binary.AppendUvarint(nil, uint64(since)))
		}
		for _, d := range stopped {
			r.remove(pendingKey(d))
		}
		for _, table := range gone {
			r.removeAll([]byte{table})
		}
		r.remove(loggedKey())
		r.set(formatKey(), []byte(strconv.Itoa(formatVersion)))
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
		uid, since := change.ClusterOf(p.Epoch), HistoryOf(p.Epoch)
		if known, found := first[uid]; uid != "" && (!found || since < known) {
			first[uid] = since
		}
	}
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
