package checkpoint

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

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

// earlier is what a state of format 1 says of streams and sinks.
type earlier struct {
	positions map[string]position // by stream
	taken     map[string][]string // streams by sink, those of all namespaces first
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

// resumesAt is the version at which a watch goes on without missing anything.
func (p *position) resumesAt() string {
	if p.complete {
		return p.version
	}
	return change.VersionBelow(p.version)
}

// load reads the state, and what is open in it.
func (e *earlier) load(s *Store) (open []string, err error) {
	note := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(open, text) {
			open = append(open, text)
		}
	}
	e.positions, e.taken = map[string]position{}, map[string][]string{}
	err = inOrder(func() error {
		return s.each([]byte{tablePosition}, func(key, value []byte) error {
			name := string(key[1:])
			p, err := parsePosition(value)
			if err != nil {
				return s.badValue("the position of "+name, err)
			}
			if e.positions[name] = p; p.isUnderWay() {
				note("a snapshot of %s is under way", name)
			}
			return nil
		})
	}, func() error {
		return s.eachPair(tableSubscription, func(sinkName, stream string) {
			if _, known := e.positions[stream]; known {
				e.taken[sinkName] = append(e.taken[sinkName], stream)
			}
		})
	}, func() error {
		return s.each([]byte{tableCarried}, func(key, value []byte) error {
			sinkName := string(key[1:])
			of, _, err := cutText(value)
			if err != nil {
				return s.badValue("what the mark of sink "+sinkName+" carries", err)
			}
			mark, _, err := s.get(markKey(sinkName))
			if string(mark) == of {
				note("the log of sink %s is ahead of the state", sinkName)
			}
			return err
		})
	}, func() error {
		return s.eachPair(tableReplayBase, func(sinkName, _ string) { note("the log of sink %s is still to be read", sinkName) })
	}, func() error {
		return s.each([]byte{tableSpooled}, func(key, value []byte) error {
			spool, err := parseSpool(value)
			if err != nil {
				return s.badValue("the spool of sink "+string(key[1:]), err)
			}
			if !spool.Empty() {
				note("%d records for sink %s are on disk", spool.Records(), key[1:])
			}
			return nil
		})
	}, func() error {
		return s.eachPair(tableAbsent, func(sinkName, stream string) {
			note("sink %s misses changes of %s, unless that version forgets it with: exporter checkpoint forget-sink %s",
				sinkName, stream, sinkName)
		})
	}, func() error {
		all, err := s.PendingSnapshots()
		for _, d := range all {
			if d.Reason != change.Requested && d.Reason != change.Resync {
				note("sink %s waits for a snapshot of %s (%s)", d.Sink, d.Stream, d.Reason)
			}
		}
		return err
	}, func() error {
		some, err := s.holds([]byte{tableMissed})
		if some {
			note("deletes are still to be told that a sink has missed")
		}
		return err
	})
	for _, of := range e.taken {
		slices.SortFunc(of, func(a, b string) int {
			return cmp.Or(cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")), cmp.Compare(a, b))
		})
	}
	return open, err
}

// eachPair visits the keys of a table that are of a sink and a stream.
func (d *database) eachPair(table byte, visit func(sinkName, stream string)) error {
	return d.each([]byte{table}, func(key, _ []byte) error {
		sinkName, stream, found := bytes.Cut(key[1:], []byte{terminator})
		if !found {
			return d.badValue("a sink's stream", errValue)
		}
		visit(string(sinkName), string(stream))
		return nil
	})
}
