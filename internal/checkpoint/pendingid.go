package checkpoint

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"

	"github.com/kubecdc/kubecdc/internal/change"
)

// idLength is how many characters an ID has. Among 2,000 pending snapshots two have the same one once in 10,000 times.
const idLength = 7

// idLetters are Crockford's: nobody reads one of them for another one.
const idLetters = "0123456789abcdefghjkmnpqrstvwxyz"

// ID is what people call the pending snapshot. It is the same in each life, and another one when the snapshot is asked
// for again.
func (p *PendingSnapshot) ID() string {
	parts := []string{p.Sink, p.Stream, string(p.Reason), strconv.FormatUint(p.Generation, 10)}
	if p.Limits != (change.Limits{}) {
		parts = append(parts, string(encodeLimits(p.Limits)))
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return base32.NewEncoding(idLetters).EncodeToString(sum[:])[:idLength]
}
