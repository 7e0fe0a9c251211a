package checkpoint

import (
	"bytes"

	"github.com/kubecdc/kubecdc/internal/change"
)

// formatVersion is the form of keys and values that this version writes.
const formatVersion = 2

// The tables are told apart by a key's first byte. Those of format 1 are in earlier.go.
const (
	tableFormat    = 0x01
	tableRestoring = 0x02 // no key -> the place in a log up to which the directory has it, nothing while it is being filled
	tableCluster   = 'C'  // no key                           -> name, uid
	tablePending   = 'D'  // sink, terminator, stream, terminator, reason -> generation, standing
	tableHeard     = 'H'  // name of the sink                 -> what was heard through its broker
	tableLimited   = 'L'  // as tablePending, terminator, limits -> as tablePending
	tableForm      = 'F'  // stream                           -> the form in which its objects are kept
	tableMark      = 'M'  // name of the sink                 -> mark
	tableSpool     = 'Q'  // sink, terminator, part, number   -> chunk of records
	tableSpooled   = 'T'  // name of the sink                 -> extent of its spool
	tableObject    = 'O'  // stream, terminator, joined key   -> uid, version, object
	tableRedaction = 'R'  // no key                           -> key of the hashes
	tableResource  = 'V'  // stream                           -> version, kind, scope of its resource
	tableDefined   = 'W'  // stream                           -> generation of its custom resource's definition
	tableUID       = 'U'  // uid of a cluster                 -> history that began when it was met
	tableFile      = 'X'  // name of a file                   -> the file; in logs of the state only
	tableRow       = '1'  // sink, terminator, resource, terminator, joined key -> history, uid, resourceVersion
	tableGrave     = '2'  // as tableRow, of objects that the sink was told are gone
	tablePlace     = '3'  // sink, terminator, resource, terminator, namespace -> position, comparison
	tableDiskRow   = '4'  // as tableRow, of what is on disk for the sink -> 1 for a tombstone or 0, and as tableRow
	tableDiskPlace = '5'  // as tablePlace, with what is on disk for the sink
	tableLogged    = 'Y'  // no key                           -> the place in the log of the state that has all of it
)

// A stream's name inside a key ends with a terminator, so that no stream is a prefix of another, and holds no
// terminator: what names never contain in practice is escaped.
const (
	terminator = 0x00
	escape     = 0x01
)

func formatKey() []byte { return []byte{tableFormat} }

func restoringKey() []byte { return []byte{tableRestoring} }

func loggedKey() []byte { return []byte{tableLogged} }

// claimedKey is that of the claim of the log with which the state was led last.
func claimedKey() []byte { return []byte{tableLogged, 'c'} }

func clusterKey() []byte { return []byte{tableCluster} }

func uidKey(uid string) []byte { return append([]byte{tableUID}, uid...) }

func redactionKey() []byte { return []byte{tableRedaction} }

func markKey(sinkName string) []byte { return append([]byte{tableMark}, sinkName...) }

func formKey(stream string) []byte { return append([]byte{tableForm}, stream...) }

func definedKey(stream string) []byte { return append([]byte{tableDefined}, stream...) }

func resourceKey(stream string) []byte { return append([]byte{tableResource}, stream...) }

// sinkPrefix is what the keys of a table that belong to the sink begin with.
func sinkPrefix(table byte, sinkName string) []byte {
	return append(append([]byte{table}, sinkName...), terminator)
}

// streamPrefix is what the keys of the table begin with that belong to the stream's objects.
func streamPrefix(table byte, stream string) []byte {
	prefix := append(make([]byte, 0, len(stream)+2), table)
	for i := range len(stream) {
		switch c := stream[i]; c {
		case terminator, escape:
			prefix = append(prefix, escape, c+1)
		default:
			prefix = append(prefix, c)
		}
	}
	return append(prefix, terminator)
}

// appendKey appends the joined key. It is not escaped: the database orders a stream's keys as the API server does.
func appendKey(dst []byte, key change.Key) []byte { return key.AppendString(dst) }

// after is the first key after all that begin with the prefix, which ends with a byte below 0xff.
func after(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	end[len(end)-1]++
	return end
}
