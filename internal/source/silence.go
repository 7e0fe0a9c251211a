package source

import "time"

// unmarkedShare is which part of the Reflector's 5 to 10 minutes a watch takes that may have no bookmarks: an API
// server keeps at least 5 minutes of Events (--etcd-compaction-interval), and the position of a quiet one is as old as
// the watch.
const unmarkedShare = 3

// minSilence is how long a watch must have been silent: whatever was under way when it began has come by then. It is
// less than a watch may take (guard.watchSeconds).
const minSilence = 30 * time.Second

// silence is what watches prove that had nothing to tell. It is pure.
type silence struct {
	least      time.Duration // of a watch that proves something
	upTo       string        // the version that the last watch proved silence up to, "" for none
	bookmarked bool          // a watch of this life had a bookmark
}

// limit is the time limit of the next watch in seconds.
func (s *silence) limit(asked *int64) *int64 {
	if asked == nil || s.bookmarked {
		return asked
	}
	short := max(1, *asked/unmarkedShare)
	return &short
}

// note remembers up to where a watch proved silence that began when the server stood at the version.
func (s *silence) note(silent bool, took time.Duration, version string) {
	s.upTo = ""
	if silent && took >= s.least {
		s.upTo = version
	}
}

// take returns what the last watch proved, which serves once.
func (s *silence) take() (version string) {
	version, s.upTo = s.upTo, ""
	return version
}
