package change

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"time"
)

// Digest says in a few bytes which objects there are, and in which versions: their number, and a sum that does not
// depend on their order. Two logs with the same objects have the same Digest, and each change costs one addition. The
// zero value stands for no objects. docs/formats.md has the definition, and test vectors.
type Digest struct {
	Objects   int
	high, low uint64 // the sum modulo 2^128
}

// DigestOf is the digest of one object.
func DigestOf(key Key, uid, version string) Digest {
	sum := sha256.Sum256([]byte(key.Namespace + "/" + key.Name + "/" + uid + "/" + version))
	return Digest{Objects: 1, high: binary.BigEndian.Uint64(sum[:8]), low: binary.BigEndian.Uint64(sum[8:])}
}

// Plus is the digest of the objects of both.
func (d Digest) Plus(other Digest) Digest {
	low, carry := bits.Add64(d.low, other.low, 0)
	high, _ := bits.Add64(d.high, other.high, carry)
	return Digest{Objects: d.Objects + other.Objects, high: high, low: low}
}

// Minus is the digest of the objects of d without those of other.
func (d Digest) Minus(other Digest) Digest {
	low, borrow := bits.Sub64(d.low, other.low, 0)
	high, _ := bits.Sub64(d.high, other.high, borrow)
	return Digest{Objects: d.Objects - other.Objects, high: high, low: low}
}

// Sum is the sum in 32 hexadecimal digits.
func (d Digest) Sum() string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, d.high), d.low))
}

// Proof is the digest of all objects of a resource that a sink had been told of before an earlier Resolved record.
type Proof struct {
	Digest
	Time time.Time // of that record: its Received
}
