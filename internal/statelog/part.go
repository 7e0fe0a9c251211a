package statelog

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// version is the form of the log that this version writes: 2 is that its rows are of each sink by itself.
const version = 2

// magic begins every message.
const magic = "kubecdc-state"

// The flags of a part.
const (
	opens  = 1 << iota // its unit has the first page of a segment
	closes             // its unit has the last one
	claims             // it only says who writes from here on
)

// NewerError says that a log was written in a form that this version does not know.
type NewerError struct{ Version int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("it was written by a newer version of exporter (form %d, this one knows %d): use that version, or give this exporter a log of its own with state.log.name",
		e.Version, version)
}

// Identity says whose state a log is.
type Identity struct {
	Cluster  string // the name
	UID      string // of namespace kube-system
	Instance string // of the state: a copy has the same one; "" is not known yet
}

// chain tells the units of one writer from all others.
type chain [8]byte

// newChain is one that no other is like.
func newChain() (c chain) {
	rand.Read(c[:]) // never fails
	return c
}

// placeOf is the place in a chain before its unit next, as the state notes it.
func placeOf(c chain, next uint64) []byte { return binary.BigEndian.AppendUint64(c[:], next) }

// parsePlace is the inverse of placeOf, false where the text is no place.
func parsePlace(place []byte) (c chain, next uint64, ok bool) {
	if len(place) != len(c)+8 {
		return c, 0, false
	}
	copy(c[:], place)
	return c, binary.BigEndian.Uint64(place[len(c):]), true
}

// part is one message of the log.
type part struct {
	of       Identity
	chain    chain
	unit     uint64
	number   int // among the parts of its unit
	parts    int
	flags    byte
	slot     uint32
	saved    time.Time // when the newest of the unit's changes were saved
	contents []byte    // of the unit, this part's
}

// errForm says that a message is none of a log of the state.
var errForm = errors.New("it is no message of a log of the state")

// encode is the message's value: magic, version, checksum of the rest, the rest.
func (p *part) encode() []byte {
	value := append(make([]byte, 0, len(p.contents)+192), magic...)
	value = append(value, version, 0, 0, 0, 0)
	at := len(value)
	for _, text := range []string{p.of.Cluster, p.of.UID, p.of.Instance, string(p.chain[:])} {
		value = appendText(value, text)
	}
	for _, n := range []uint64{p.unit, uint64(p.number), uint64(p.parts), uint64(p.flags), uint64(p.slot), uint64(p.saved.UnixMilli())} {
		value = binary.AppendUvarint(value, n)
	}
	value = append(value, p.contents...)
	binary.LittleEndian.PutUint32(value[at-4:], sum(value[at:]))
	return value
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

func sum(of []byte) uint32 { return crc32.Checksum(of, crc32.MakeTable(crc32.Castagnoli)) }

// parsePart is the inverse of encode. The contents are the value's.
func parsePart(value []byte) (p part, err error) {
	const head = len(magic) + 1 + 4
	if len(value) < len(magic)+1 || string(value[:len(magic)]) != magic {
		return p, errForm
	}
	if v := int(value[len(magic)]); v > version {
		return p, &NewerError{Version: v}
	}
	if len(value) < head || binary.LittleEndian.Uint32(value[head-4:]) != sum(value[head:]) {
		return p, errForm
	}
	r := reader{rest: value[head:]}
	p.of = Identity{Cluster: r.text(), UID: r.text(), Instance: r.text()}
	copy(p.chain[:], r.text())
	p.unit, p.number, p.parts = r.number(), int(r.number()), int(r.number())
	p.flags, p.slot, p.saved = byte(r.number()), uint32(r.number()), time.UnixMilli(int64(r.number()))
	p.contents = r.rest
	if r.bad || p.number < 0 || p.number >= p.parts {
		return p, errForm
	}
	return p, nil
}

// reader cuts values off, and remembers when one could not be.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number() uint64 {
	n, width := binary.Uvarint(r.rest)
	if width <= 0 {
		r.bad = true
		return 0
	}
	r.rest = r.rest[width:]
	return n
}

func (r *reader) text() string {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.bad = true
		return ""
	}
	text := string(r.rest[:n])
	r.rest = r.rest[n:]
	return text
}
