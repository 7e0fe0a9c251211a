package checkpoint

import (
	"encoding/binary"
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
)

// EpochOf is the name of the history, as of change.NewEpoch: a history is one of the cluster that was behind the name
// when it was found.
func (i identity) EpochOf(history History) (string, error) {
	clusters, err := i.met()
	if err != nil {
		return "", err
	}
	uid, since := "", History(0)
	for other, met := range clusters {
		if met <= history && met > since {
			uid, since = other, met
		}
	}
	if history <= 1 {
		return uid, nil
	}
	return change.NewEpoch(uid, int64(history)), nil
}

// Met notes durably that the cluster of the uid is behind the name, and returns the history that began when it was
// first: 1 where no other was before it.
func (i identity) Met(uid string) (History, error) {
	clusters, err := i.met()
	if err != nil || clusters[uid] != 0 {
		return clusters[uid], err
	}
	since := History(1)
	if len(clusters) > 0 {
		since = History(time.Now().UnixMilli())
	}
	return since, i.set(uidKey(uid), binary.AppendUvarint(nil, uint64(since)))
}

// met are the clusters that were ever behind the name, and when that was noted first.
func (i identity) met() (map[string]History, error) {
	clusters := map[string]History{}
	err := i.each([]byte{tableUID}, func(key, value []byte) error {
		since, width := binary.Uvarint(value)
		if width < 0 {
			return i.badValue("the clusters that were met", errValue)
		}
		clusters[string(key[1:])] = max(History(since), 1)
		return nil
	})
	return clusters, err
}
