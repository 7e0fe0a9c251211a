package verify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/format/decode"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// Digests hold a log against what it says of itself: each record of what is resolved says which objects the log had at
// the one before. A log of several partitions has a copy of it in each, or the offsets of all of them. It takes memory
// for each object that the log names.
type Digests struct {
	Records int

	parts  map[logPart]*partition
	copies map[resolvedAt]map[logPart]change.Digest // of what was resolved, the digest of each partition there
	claims []claim
	said   map[claim]bool
	notes  map[string]string // by resource, the note of a rejected record that was read first
}

// logPart is what a partition has of a resource.
type logPart struct {
	topic     string
	partition int32
	resource  string
}

// partition is the fold of a logPart.
type partition struct {
	objects map[change.Key]change.Digest
	digest  change.Digest
	after   []step // of its newest records
}

// step is the digest after a record.
type step struct {
	offset int64
	digest change.Digest
}

// resolvedAt is what was resolved of a stream at a time.
type resolvedAt struct {
	resource, namespace string
	at                  time.Time
}

// claim is what a later record says of it.
type claim struct {
	of      resolvedAt
	objects int
	sum     string
}

// resolved is the data of a record of what is resolved.
type resolved struct {
	ResourceVersion string    `json:"resourceVersion"`
	Time            time.Time `json:"time"`
	Digest          *struct {
		Time    time.Time `json:"time"`
		Objects int       `json:"objects"`
		Sum     string    `json:"sum"`
	} `json:"digest"`
}

// NewDigests are of an empty log.
func NewDigests() *Digests {
	return &Digests{parts: map[logPart]*partition{}, copies: map[resolvedAt]map[logPart]change.Digest{}, said: map[claim]bool{}, notes: map[string]string{}}
}

// Take folds the next message. It returns an error for a message of kubecdc's whose value is damaged.
func (d *Digests) Take(m *sink.Stored) error {
	id, err := decode.ID(m)
	isHistory := m.Header(sink.HeaderReplayed) == string(change.History) || bytes.Contains(m.Value, []byte(`"replayed":"history"`)) // in a file
	if errors.Is(err, change.ErrForeignID) || isHistory {
		return nil
	}
	if err != nil {
		return err
	}
	d.Records++
	at := logPart{m.Destination, m.Partition, id.Resource}
	if m.Key == nil { // its subjects are one log
		at.topic = ""
	}
	isNote := id.Op == change.Gap && id.Key.Name != ""
	switch {
	case id.Op == change.Resolved:
		return d.resolve(m, &id, at)
	case isNote && d.notes[id.Resource] == "":
		d.notes[id.Resource] = fmt.Sprintf("the record of %s at resourceVersion %s was rejected", id.Key.Shown(), id.ResourceVersion)
	case !id.Op.OfObject():
		return nil
	}
	at.topic = strings.TrimSuffix(at.topic, sink.FramesSuffix)
	p := d.part(at)
	p.digest = p.digest.Minus(p.objects[id.Key])
	delete(p.objects, id.Key)
	if id.Op != change.Deleted && !m.Erases {
		p.objects[id.Key] = change.DigestOf(id.Key, id.UID, id.ResourceVersion)
		p.digest = p.digest.Plus(p.objects[id.Key])
	}
	p.after = append(p.after, step{m.Offset, p.digest})
	return nil
}

func (d *Digests) part(at logPart) *partition {
	if d.parts[at] == nil {
		d.parts[at] = &partition{objects: map[change.Key]change.Digest{}}
	}
	return d.parts[at]
}

// resolve notes which objects the partition has where something is resolved, or all partitions before their offsets.
func (d *Digests) resolve(m *sink.Stored, id *change.ID, at logPart) error {
	c, err := decode.Read(m)
	var said resolved
	if err == nil {
		err = json.Unmarshal(c.Data, &said)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", m.Place, err)
	}
	of := resolvedAt{id.Resource, id.Key.Namespace, said.Time}
	if d.copies[of] == nil {
		d.copies[of] = map[logPart]change.Digest{}
	}
	var offsets map[string][]int64
	if text := m.Header(sink.HeaderOffsets); text == "" {
		d.copies[of][at] = d.part(at).digest
	} else if err := json.Unmarshal([]byte(text), &offsets); err != nil {
		return fmt.Errorf("read header %s of %s: %w", sink.HeaderOffsets, m.Place, err)
	}
	for topic, all := range offsets {
		for number, offset := range all {
			one := logPart{topic, int32(number), id.Resource}
			d.copies[of][one] = d.part(one).before(offset)
		}
	}
	if digest := said.Digest; digest != nil {
		one := claim{resolvedAt{id.Resource, id.Key.Namespace, digest.Time}, digest.Objects, digest.Sum}
		if !d.said[one] { // each partition says it
			d.said[one], d.claims = true, append(d.claims, one)
		}
	}
	return nil
}

// before is the digest before the offset. What is before an offset is not asked for again.
func (p *partition) before(offset int64) change.Digest {
	n, _ := slices.BinarySearchFunc(p.after, offset, func(s step, offset int64) int { return cmp.Compare(s.offset, offset) })
	if n == 0 {
		return change.Digest{}
	}
	p.after = p.after[n-1:]
	return p.after[0].digest
}

// DigestReport is what exporter verify --offline says of one sink, and with -o json its document.
type DigestReport struct {
	Sink     string          `json:"sink"`
	Kind     string          `json:"kind"`
	Records  int             `json:"records"`
	Digests  int             `json:"digests"` // that were compared
	Equal    bool            `json:"equal"`
	Mismatch []DigestDiffers `json:"mismatch,omitempty"` // the first one of each resource
}

// DigestDiffers is the first digest of a resource that is another one than the log's.
type DigestDiffers struct {
	Resource string    `json:"resource"`
	After    time.Time `json:"after,omitzero"` // when the log was as it should be, zero is never
	At       time.Time `json:"at"`
	Objects  int       `json:"objects"` // in the log
	Want     int       `json:"want"`
	Times    int       `json:"times"` // so many of the resource's digests are others
	Note     string    `json:"note,omitempty"`
}

// Report compares what the log says of itself with what it has.
func (d *Digests) Report() DigestReport {
	report := DigestReport{Records: d.Records, Equal: true}
	widest := map[string]int{} // the most copies of one by resource
	for of, copies := range d.copies {
		widest[of.resource] = max(widest[of.resource], len(copies))
	}
	wrong, right := map[string]int{}, map[string]time.Time{} // by resource: the place in report.Mismatch, and when it was right last
	for _, c := range d.claims {
		copies := d.copies[c.of]
		if len(copies) == 0 || len(copies) < widest[c.of.resource] {
			continue // it was not read whole
		}
		report.Digests++
		var have change.Digest
		for _, one := range copies {
			have = have.Plus(one)
		}
		at, found := wrong[c.of.resource]
		switch {
		case have.Objects == c.objects && have.Sum() == c.sum:
			right[c.of.resource] = c.of.at
		case found:
			report.Mismatch[at].Times++
		default:
			report.Equal = false
			wrong[c.of.resource] = len(report.Mismatch)
			report.Mismatch = append(report.Mismatch, DigestDiffers{
				Resource: c.of.resource, After: right[c.of.resource], At: c.of.at, Objects: have.Objects, Want: c.objects, Times: 1, Note: d.notes[c.of.resource],
			})
		}
	}
	return report
}
