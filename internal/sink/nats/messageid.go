package nats

import (
	"crypto/sha256"
	"encoding/base64"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// messageID is what the server knows a message of a shared stream by. JetStream takes a message of the same id for a
// repetition, on whatever subject and by whomever.
func messageID(author, subject, id string) string { return shortHash(author, subject) + "/" + id }

// again is the id under which a message goes out that the server has at the sequence already, as of an earlier telling.
func again(id string, earlier uint64) string {
	if earlier == 0 {
		return id
	}
	return id + tellingAgain + strconv.FormatUint(earlier, 10)
}

const (
	tellingAgain  = "#" // no id ends with it and a number
	longestNumber = len("18446744073709551615")
)

// isMessageID says whether the server knows a message by the id, told for the first time or again.
func isMessageID(have, id string) bool {
	rest, found := strings.CutPrefix(have, id)
	return found && (rest == "" || strings.HasPrefix(rest, tellingAgain))
}

// tellings are where a shared stream has what was told last since it was opened, for the objects of each of some hash.
// What else has the hash of an object makes a late copy of it, from before a crash, be sent again: it does no harm.
type tellings []uint64

const hashes = 4096

// newTellings begins at the end of the stream. What is before that was told by those whose mark is known.
func newTellings(end uint64) tellings {
	t := make(tellings, hashes)
	for i := range t {
		t[i] = end
	}
	return t
}

func (t tellings) of(m *sink.Message) *uint64 {
	hash := fnv.New32a()
	hash.Write([]byte(m.Object()))
	return &t[hash.Sum32()%hashes]
}

func shortHash(parts ...string) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write([]byte(part))
		hash.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:hashedBytes])
}

// hashedBytes of a hash tell writers and subjects apart; in base64 they are a third more.
const hashedBytes = 12
