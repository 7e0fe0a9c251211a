package source

import (
	"testing"
	"time"
)

// A sink that asks to be told every few seconds up to where it has everything gets the bookmark with which a watch
// ends. Watches that have none, as of Events, are not opened more often for it.
func TestWatchesAreAsShortAsWhatIsResolved(t *testing.T) {
	const asked = 600
	for what, c := range map[string]struct {
		bookmarked bool
		resolved   time.Duration
		want       int64
	}{
		"nobody asks":                {true, 0, asked},
		"a minute":                   {true, time.Minute, asked},
		"ten seconds":                {true, 10 * time.Second, 11},
		"less than a watch can tell": {true, time.Second, 4},
		"no bookmarks":               {false, 10 * time.Second, asked / unmarkedShare},
	} {
		s, seconds := silence{bookmarked: c.bookmarked}, int64(asked)
		if got := s.limit(&seconds, c.resolved); *got != c.want {
			t.Errorf("%s: the watch takes %d seconds, want %d", what, *got, c.want)
		}
	}
}
