package source

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// keptTime is for how long a server keeps what happened, and some more (k8s.io/apiserver keeps 75 s, unless there are
// more than 102,400 changes).
const keptTime = time.Minute

// remnant is what a server still has that has forgotten the position of a watch. A server that has just started says
// which version is its oldest: what it has forgotten is only what came before. Had the watch ended long ago, the server
// might be forgetting more, and that version might be gone, too. The zero value knows nothing.
type remnant struct {
	oldest atomic.Pointer[string]
	worked atomic.Pointer[time.Time] // when the last watch ended that worked; nil before, and once it was asked for
}

// ended takes a watch that ended.
func (r *remnant) ended(took time.Duration) {
	if now := time.Now(); took >= time.Second {
		r.worked.Store(&now)
	}
}

// gone takes the error that says that the position is gone.
func (r *remnant) gone(err error) {
	var asked, oldest uint64
	r.oldest.Store(nil)
	if n, _ := fmt.Sscanf(err.Error(), "too old resource version: %d (%d)", &asked, &oldest); n == 2 { // else it does not say
		version := strconv.FormatUint(oldest, 10)
		r.oldest.Store(&version)
	}
}

// begin is where a stream goes on that stood at the position, on a server that stands at now: at the oldest version
// that the server has, if that is certain to be there for a while, and was not asked for before.
func (r *remnant) begin(position, now string) string {
	oldest, worked := r.oldest.Swap(nil), r.worked.Swap(nil)
	switch {
	case oldest == nil || worked == nil || time.Since(*worked) > keptTime:
	case change.CompareVersions(position, *oldest) <= 0 && change.CompareVersions(*oldest, now) <= 0:
		return *oldest
	}
	return now
}
