package source

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
)

var errUnsorted = errors.New("the list is not sorted")

var errChanged = errors.New("the list differs from what the sinks have")

// errWatchEnded ends a page.
var errWatchEnded = errors.New("the watch has ended that the page was read beside")

var errOtherCluster = errors.New("another cluster answers at the server's address")

// isRange says whether the list goes on at a key after the last one, as a server says that reads a range of etcd's
// keys (k8s.io/apiserver, pkg/storage/continue.go). A token of another form proves nothing.
func isRange(token, namespace string, last []byte) bool {
	text, err := base64.RawURLEncoding.DecodeString(token)
	var next struct {
		Version string `json:"v"`
		Start   string `json:"start"`
	}
	if err != nil || json.Unmarshal(text, &next) != nil || next.Version != "meta.k8s.io/v1" || len(last) == 0 {
		return false
	}
	start := strings.TrimPrefix(next.Start, "/")
	if namespace != "" {
		start = namespace + "/" + start
	}
	return start > string(last)
}

// snapshotBackoff is reflectorBackoff for what is read beside a watch.
func snapshotBackoff() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(30*time.Second), backoff.WithMaxElapsedTime(0),
	)
}

// maxPassed bounds what the list has not and waits for the watch to pass the list (I6). Where there is more, the reader
// waits.
const maxPassed = 1 << 13

// slowPage is how long a page may take before the next ones become smaller: an API server ends a list after a minute.
const slowPage = 15 * time.Second

// firstPage is the limit of the smallest page, and of the first one of a full snapshot, whose progress shows after it.
const firstPage = 16

// nextLimit is the limit of the page after one that took so long. It grows where a page of four times the size would
// not be slow either.
func nextLimit(limit int, took time.Duration) int {
	switch {
	case took > slowPage:
		return max(limit/2, firstPage)
	case took < slowPage/4:
		return min(4*limit, pageSize)
	}
	return limit
}
