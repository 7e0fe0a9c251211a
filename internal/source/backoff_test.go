package source

import (
	"testing"
	"time"
)

// A stream that failed for long goes on within half a minute after the server is there again.
func TestI4WaitAfterAFailureIsBounded(t *testing.T) {
	const longest = 30 * time.Second
	for range 100 {
		delay := reflectorBackoff().DelayFunc()
		if first := delay(); first < 100*time.Millisecond || first > 200*time.Millisecond {
			t.Fatalf("the first wait is %s, want from 0.1 to 0.2 s", first)
		}
		for range 20 {
			if d := delay(); d > longest {
				t.Fatalf("a wait is %s, want at most %s", d, longest)
			}
		}
	}
}
