package statelog

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/kubecdc/kubecdc/internal/checkpoint"
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
		return p, refused("it was written by a newer version of exporter (form %d, this one knows %d): "+
			"use that version, or give this exporter a log of its own with state.log.name", v, version)
	}
	if len(value) < head || binary.LittleEndian.Uint32(value[head-4:]) != sum(value[head:]) {
		return p, errForm
	}
	r := checkpoint.Reader{Rest: value[head:]}
	p.of = Identity{Cluster: r.Text(), UID: r.Text(), Instance: r.Text()}
	copy(p.chain[:], r.Text())
	p.unit, p.number, p.parts = r.Number(), int(r.Number()), int(r.Number())
	p.flags, p.slot, p.saved = byte(r.Number()), uint32(r.Number()), time.UnixMilli(int64(r.Number()))
	p.contents = r.Rest
	if r.Bad || p.number < 0 || p.number >= p.parts {
		return p, errForm
	}
	return p, nil
}

// id names the part, as logs of the broker show it.
func (p *part) id() string {
	return fmt.Sprintf("%s/%d/%d", hex.EncodeToString(p.chain[:]), p.unit, p.number)
}

// unit is what is written at once.
type unit struct {
	changes checkpoint.Changes
	flags   byte
	saved   time.Time
}

// maxUnit is more bytes than the changes of a unit have: what waits, a page, and the largest row or file.
const maxUnit = 64 << 20

// errUnit says that the parts of a unit do not make one.
var errUnit = errors.New("a unit of the log of the state is damaged")

// join makes the unit's changes of its contents.
func join(contents []byte) (checkpoint.Changes, error) {
	if size, err := s2.DecodedLen(contents); err != nil || size > maxUnit {
		return nil, errUnit
	}
	raw, err := s2.Decode(nil, contents)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnit, err)
	}
	return raw, nil
}

// Survey finds, in what the log holds from its beginning on, the units that make the newest state. It is pure, and
// keeps a few bytes of each message. The zero value has seen nothing.
type Survey struct {
	best, now run
	slots     uint32 // how many there are
	newest    Identity
	seen      bool
	claimer   chain // who said last that he writes from here on
	claim     said
	claimed   time.Time // when he said it
}

// run is the units of one chain, without a hole, as far as they may count.
type run struct {
	chain  chain
	next   uint64 // the unit to come, or to be completed
	parts  int    // that the unit to come has so far
	whole  bool   // a segment is complete in it
	from   uint64 // the first unit of the newest complete segment
	opened uint64 // the first unit of a segment that is not complete
	open   bool
	live   []placed // parts from the first unit on that may count
	saved  time.Time
	// what the newest complete segment takes, and what came since
	segment, since int
}

// messageCost is what a message counts beside its bytes, since it has a slot.
const messageCost = 1 << 10

// placed is where a part of a unit is.
type placed struct {
	unit  uint64
	slot  uint32
	bytes int32
}

// add takes the next message of the log.
func (s *Survey) add(p *part) {
	isClaim := p.flags&claims != 0
	if !isClaim || p.of.Instance != "" { // who restores the state does not know yet whose it is
		s.newest, s.seen = p.of, true
	}
	if isClaim {
		s.claimer, s.claim, s.claimed = p.chain, saidBy(p.contents), p.saved
		return
	}
	s.slots = max(s.slots, p.slot+1)
	r := &s.now
	goesOn := p.chain == r.chain && p.unit == r.next
	if goesOn && p.number > 0 && p.number != r.parts {
		r.parts = 0 // what is left of a torn unit, which begins again
		return
	}
	if !goesOn {
		if r.whole { // it counts unless a later one does
			s.best = *r
		}
		s.now = run{chain: p.chain, next: p.unit}
		if p.number > 0 {
			s.now.chain = chain{}
			return
		}
	}
	r.add(p)
}

// written is when somebody wrote to the log last.
func (s *Survey) written() time.Time {
	if s.now.saved.After(s.claimed) {
		return s.now.saved
	}
	return s.claimed
}

func (r *run) add(p *part) {
	for p.number == 0 && len(r.live) > 0 && r.live[len(r.live)-1].unit == p.unit { // of a torn one
		r.live = r.live[:len(r.live)-1]
	}
	r.live = append(r.live, placed{p.unit, p.slot, int32(len(p.contents))})
	r.since += len(p.contents) + messageCost
	if r.parts = p.number + 1; r.parts < p.parts {
		return
	}
	r.next, r.parts, r.saved = p.unit+1, 0, p.saved
	if p.flags&opens != 0 {
		r.open, r.opened = true, p.unit
		if !r.whole {
			r.forget(func(l placed) bool { return l.unit < p.unit })
		}
	}
	if p.flags&closes != 0 && r.open {
		r.whole, r.from, r.open = true, r.opened, false
		r.forget(func(l placed) bool { return l.unit < r.from })
		r.segment, r.since = r.bytes()+len(r.live)*messageCost, 0
	}
	if !r.whole && !r.open {
		r.live = nil
	}
}

func (r *run) forget(which func(placed) bool) { r.live = slices.DeleteFunc(r.live, which) }

func (r *run) bytes() (n int) {
	for _, l := range r.live {
		n += int(l.bytes)
	}
	return n
}

// found is the run that counts.
func (s *Survey) found() *run {
	if s.now.whole || !s.best.whole {
		return &s.now
	}
	return &s.best
}

// end is where a writer goes on that has the newest state, false where nobody can: another chain was begun after it.
func (s *Survey) end() ([]byte, bool) { return placeOf(s.now.chain, s.now.next), s.now.whole }

// Claimant is who says that he writes from here on. What is "" is not known.
type Claimant struct {
	Member string // his state directory's id
	Sinks  string // what he writes to, in words of his own
	Lease  string // that says who leads, namespace/name
}

// said is what a claim says.
type said struct {
	Claimant
	earlier []chain // the member's claims before this one, newest first, with none of another member between them
}

// maxEarlier is how many earlier claims a claim names.
const maxEarlier = 32

// after is the claim of who claims after this one, which had the chain.
func (s *said) after(by chain, who Claimant) said {
	if who.Member != s.Member || by == (chain{}) {
		return said{Claimant: who}
	}
	earlier := append([]chain{by}, s.earlier...)
	return said{who, earlier[:min(len(earlier), maxEarlier)]}
}

// contents are those of a claim.
func (s *said) contents() []byte {
	to := appendText(appendText(appendText(nil, s.Member), s.Sinks), s.Lease)
	for _, c := range s.earlier {
		to = append(to, c[:]...)
	}
	return to
}

// saidBy is the inverse of contents. A claim of an earlier version has no earlier ones, no Lease, or names nobody.
func saidBy(contents []byte) said {
	r := checkpoint.Reader{Rest: contents}
	s := said{Claimant: Claimant{Member: r.Text(), Sinks: r.Text()}}
	if r.Bad {
		return said{}
	}
	if s.Lease = r.Text(); r.Bad {
		s.Lease = ""
		return s
	}
	for rest := r.Rest; len(rest) >= len(chain{}); rest = rest[len(chain{}):] {
		s.earlier = append(s.earlier, chain(rest))
	}
	return s
}

// RefusedError says why the log is not ours to write, whatever is tried: it is of a newer version, another cluster or
// another exporter, shared under another Lease, or no log of a state at all.
type RefusedError struct{ why string }

func (e *RefusedError) Error() string { return e.why }

func refused(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// OtherLease refuses a log to which exporters write that share another Lease: two releases would fence each other in
// turns.
func OtherLease(have, want string) error {
	return refused("exporters that share the Lease %s write to it, and this one has %s: give each release a log of its own with state.log.name, "+
		"or let all of one release share a Lease with ha.lease; if the Lease has been renamed, stop those with the old one first", have, want)
}

// IsForGood says whether the log is not ours to write.
func IsForGood(err error) bool {
	return errors.As(err, new(*RefusedError))
}
