package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

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
	c := &conversion{Store: s, places: map[string]Place{}}
	open, err := c.load(s)
	if err != nil {
		return err
	}
	if s.opts.ReadOnly || len(open) > 0 {
		return &EarlierError{Dir: s.dir, Format: s.format, Open: open}
	}
	s.gate.open() // so many rows are compacted meanwhile
	s.opts.Logger.Info("the saved state is of an earlier version, and is converted", "dir", s.dir, "sinks", len(c.taken), "streams", len(c.positions))
	if err := inOrder(c.begin, c.rows, c.finish); err != nil {
		return fmt.Errorf("convert state %s from format %d: %w", s.dir, s.format, err)
	}
	s.format = formatVersion
	return nil
}

// conversion is what is known of a state of format 1.
type conversion struct {
	*Store
	earlier
	places map[string]Place // by key
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
			c.places[string(placeKey(tablePlace, sinkName, resource, namespace))] = Place{
				At: Point{history, p.resumesAt()}, High: Point{history, highest}, Selection: p.selector,
			}
		}
	}
	return nil
}

// rowsOf gives the sink the stream's rows, and returns the highest version among them.
func (c *conversion) rowsOf(sinkName, resource, stream string, history History) (highest string, err error) {
	prefix := streamPrefix(tableInventory, stream)
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
				r.key = rowKey(r.key[:0], tableRow, sinkName, Object{resource, change.ParseKey(string(key[len(prefix):]))})
				r.value = appendRow(r.value[:0], Row{At: Point{history, version}, UID: uid})
				r.set(r.key, r.value)
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
			r.set(uidKey(uid), binary.AppendUvarint(nil, uint64(since)))
		}
		for _, d := range stopped {
			r.remove(pendingKey(&d))
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
		uid, since := change.ClusterOf(p.epoch), HistoryOf(p.epoch)
		if known, found := first[uid]; uid != "" && (!found || since < known) {
			first[uid] = since
		}
	}
	for uid := range first {
		if !slices.Contains(uids, uid) {
			uids = append(uids, uid)
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
