package verify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Digests hold a log against what it says of itself: each record of what is resolved says which objects the log had at
// an earlier one. Each partition of a log has these records, so what they say is held against the sum of all partitions
// there. It takes memory for each object and for each record of what is resolved.
type Digests struct {
	Records int

	parts    map[logPart]*partition
	resolved map[resolvedAt]*proof
}

// table is a resource of a cluster. Clusters may share a log.
type table struct{ cluster, resource string }

// logPart is what a partition has of a table.
type logPart struct {
	topic     string // "" is a stream of JetStream: its subjects are one log
	partition int32
	table
}

// partition is the fold of a logPart.
type partition struct {
	objects map[change.Key]change.Digest
	digest  change.Digest        // of all of them
	unknown map[change.Key]bool  // a rejected record was their newest, which may have been their delete
	newest  map[string]time.Time // what was resolved last, by namespace of the stream
}

// resolvedAt is what was resolved of a stream at a time.
type resolvedAt struct {
	table
	namespace string
	at        time.Time
}

// proof is what the log had there, and what a later record says that it had.
type proof struct {
	have    change.Digest // in all partitions that were read
	copies  int           // in so many
	said    bool
	objects int
	sum     string
}

// NewDigests are of an empty log.
func NewDigests() *Digests {
	return &Digests{parts: map[logPart]*partition{}, resolved: map[resolvedAt]*proof{}}
}

// Take folds the next message. It returns an error for a message of kubecdc's whose value is damaged.
func (d *Digests) Take(m *sink.Stored) error {
	id, err := decode.ID(m)
	if errors.Is(err, change.ErrForeignID) {
		return nil
	}
	if err != nil {
		return err
	}
	d.Records++
	p := d.part(logPart{m.Destination, m.Partition, table{change.ClusterOf(id.Cluster), id.Resource}}, m.Key == nil)
	switch isNote := id.Op == change.Gap && id.Key.Name != ""; {
	case id.Op == change.Resolved:
		return d.resolve(m, &id, p)
	case !id.Op.OfObject() && !isNote:
		return nil
	case isNote:
		p.put(id.Key, change.Digest{})
		p.unknown[id.Key] = true
		return nil
	}
	if isHistory, err := replaysHistory(m); isHistory || err != nil {
		return err
	}
	delete(p.unknown, id.Key)
	if id.Op == change.Deleted || m.Erases {
		p.put(id.Key, change.Digest{})
	} else {
		p.put(id.Key, change.DigestOf(id.Key, id.UID, id.ResourceVersion))
	}
	return nil
}

// replaysHistory says whether the record is a dead letter that was sent again when the log had something newer of its
// object.
func replaysHistory(m *sink.Stored) (bool, error) {
	if m.Header(sink.HeaderMark+"replayed") == "" && !bytes.Contains(m.Value, []byte(`"replayed":`)) {
		return false, nil
	}
	c, err := decode.Read(m)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", m.Place, err)
	}
	return c.Replayed == change.History, nil
}

func (d *Digests) part(at logPart, isOne bool) *partition {
	if isOne {
		at.topic = ""
	}
	if d.parts[at] == nil {
		d.parts[at] = &partition{objects: map[change.Key]change.Digest{}, unknown: map[change.Key]bool{}, newest: map[string]time.Time{}}
	}
	return d.parts[at]
}

func (p *partition) put(key change.Key, object change.Digest) {
	p.digest = p.digest.Minus(p.objects[key]).Plus(object)
	if delete(p.objects, key); object.Objects > 0 {
		p.objects[key] = object
	}
}

// resolve adds what the partition has there, unless a rejected record leaves that open, and notes what the record says.
func (d *Digests) resolve(m *sink.Stored, id *change.ID, p *partition) error {
	c, err := decode.Read(m)
	var said struct {
		Time   time.Time `json:"time"`
		Digest *struct {
			Time    time.Time `json:"time"`
			Objects int       `json:"objects"`
			Sum     string    `json:"sum"`
		} `json:"digest"`
	}
	if err == nil {
		err = json.Unmarshal(c.Data, &said)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", m.Place, err)
	}
	of := table{change.ClusterOf(id.Cluster), id.Resource}
	if said.Time.After(p.newest[id.Key.Namespace]) { // else it comes again
		p.newest[id.Key.Namespace] = said.Time
		if here := d.proof(resolvedAt{of, id.Key.Namespace, said.Time}); len(p.unknown) == 0 {
			here.have = here.have.Plus(p.digest)
			here.copies++
		}
	}
	if digest := said.Digest; digest != nil {
		earlier := d.proof(resolvedAt{of, id.Key.Namespace, digest.Time})
		earlier.said, earlier.objects, earlier.sum = true, digest.Objects, digest.Sum
	}
	return nil
}

func (d *Digests) proof(of resolvedAt) *proof {
	if d.resolved[of] == nil {
		d.resolved[of] = &proof{}
	}
	return d.resolved[of]
}

// DigestReport is what exporter verify --offline says of one sink, and with -o json its document.
type DigestReport struct {
	Sink     string          `json:"sink"`
	Kind     string          `json:"kind"`
	Records  int             `json:"records"`
	Digests  int             `json:"digests"` // that were compared
	Equal    bool            `json:"equal"`
	Mismatch []DigestDiffers `json:"mismatch,omitempty"`
}

// DigestDiffers is the first digest of a resource that is another one than the log's.
type DigestDiffers struct {
	Cluster  string    `json:"cluster"` // as in ids
	Resource string    `json:"resource"`
	After    time.Time `json:"after,omitzero"` // when the log was as it should be, zero is never
	At       time.Time `json:"at"`
	Objects  int       `json:"objects"` // in the log
	Want     int       `json:"want"`
	Times    int       `json:"times"` // so many of the resource's digests are others
}

// Report compares what the log says of itself with what it has. A log whose beginning is gone lacks what has not
// changed since: of a resource that is right somewhere, what was before that is not held against it.
func (d *Digests) Report() DigestReport {
	report := DigestReport{Records: d.Records}
	whole, all := map[table]int{}, map[table][]resolvedAt{} // the number of partitions, and what was resolved
	for of, proof := range d.resolved {
		whole[of.table] = max(whole[of.table], proof.copies)
		all[of.table] = append(all[of.table], of)
	}
	for of, times := range all {
		slices.SortFunc(times, func(a, b resolvedAt) int { return a.at.Compare(b.at) })
		differs := DigestDiffers{Cluster: of.cluster, Resource: of.resource}
		for _, at := range times {
			proof := d.resolved[at]
			if !proof.said || proof.copies < whole[of] { // nothing is said of it, or it was not read whole
				continue
			}
			report.Digests++
			switch isRight := proof.have.Objects == proof.objects && proof.have.Sum() == proof.sum; {
			case isRight && differs.After.IsZero():
				differs = DigestDiffers{Cluster: of.cluster, Resource: of.resource, After: at.at}
			case isRight && differs.Times == 0:
				differs.After = at.at
			case !isRight:
				if differs.Times++; differs.Times == 1 {
					differs.At, differs.Objects, differs.Want = at.at, proof.have.Objects, proof.objects
				}
			}
		}
		if differs.Times > 0 {
			report.Mismatch = append(report.Mismatch, differs)
		}
	}
	slices.SortFunc(report.Mismatch, func(a, b DigestDiffers) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Resource, b.Resource))
	})
	report.Equal = len(report.Mismatch) == 0
	return report
}
