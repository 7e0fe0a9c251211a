package checkpoint

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/kubecdc/kubecdc/internal/fifo"
)

// The flags of a row's value. A million objects are kept, so the common shapes are: a uid is 16 bytes, a
// resourceVersion a varint. Anything else is kept as text, so that what is read is exactly what was written.
const (
	uidBinary     = 1 << 0
	versionBinary = 1 << 1
)

// errValue is a value that no version of the exporter wrote.
var errValue = errors.New("a value has an unknown format")

// appendEntry appends the value of an object: flags, uid, resourceVersion.
func appendEntry(dst []byte, uid, version string) []byte {
	at := len(dst)
	dst = append(dst, 0)
	if id, ok := parseUUID(uid); ok {
		dst[at] |= uidBinary
		dst = append(dst, id[:]...)
	} else {
		dst = appendText(dst, uid)
	}
	if n, ok := parseVersion(version); ok {
		dst[at] |= versionBinary
		return binary.AppendUvarint(dst, n)
	}
	return append(dst, version...)
}

// parseEntry is the inverse of appendEntry.
func parseEntry(value []byte) (uid, version string, err error) {
	if len(value) == 0 || value[0]&^(uidBinary|versionBinary) != 0 {
		return "", "", errValue
	}
	flags, rest := value[0], value[1:]
	if flags&uidBinary != 0 {
		if len(rest) < 16 {
			return "", "", errValue
		}
		uid, rest = uuid.UUID(rest[:16]).String(), rest[16:]
	} else if uid, rest, err = cutText(rest); err != nil {
		return "", "", err
	}
	if flags&versionBinary == 0 {
		return uid, string(rest), nil
	}
	n, width := binary.Uvarint(rest)
	if width <= 0 || width != len(rest) {
		return "", "", errValue
	}
	return uid, strconv.FormatUint(n, 10), nil
}

// parseUUID reads a UUID in its canonical form; nothing else would be written back alike.
func parseUUID(text string) (id uuid.UUID, ok bool) {
	if len(text) != 36 || strings.ToLower(text) != text {
		return id, false
	}
	id, err := uuid.Parse(text)
	return id, err == nil
}

// parseVersion reads a decimal number that is written back alike: no sign, no leading zero, no overflow.
func parseVersion(text string) (uint64, bool) {
	if text == "" || (text[0] == '0' && len(text) > 1) || text[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// appendText appends a text with its length in front.
func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func cutText(value []byte) (text string, rest []byte, err error) {
	n, width := binary.Uvarint(value)
	if width <= 0 || n > uint64(len(value)-width) {
		return "", nil, errValue
	}
	value = value[width:]
	return string(value[:n]), value[n:], nil
}

// appendSpool appends an extent of a spool.
func appendSpool(dst []byte, spool *fifo.Spool) []byte {
	for _, e := range spool {
		for _, n := range []uint64{e.First, e.Next, uint64(e.Bytes), uint64(e.Records)} {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	return dst
}

// parseSpool is the inverse of appendSpool.
func parseSpool(value []byte) (fifo.Spool, error) {
	var spool fifo.Spool
	for part := range spool {
		var n [4]uint64
		for i := range n {
			width := 0
			if n[i], width = binary.Uvarint(value); width <= 0 {
				return fifo.Spool{}, errValue
			}
			value = value[width:]
		}
		spool[part] = fifo.Extent{First: n[0], Next: n[1], Bytes: int64(n[2]), Records: int64(n[3])}
	}
	if len(value) > 0 {
		return fifo.Spool{}, errors.Join(errValue, errors.New("an extent has trailing bytes"))
	}
	return spool, nil
}
