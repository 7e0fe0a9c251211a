package delivery

import "testing"

func TestMessageIsFoundInItsRecord(t *testing.T) {
	l := &Listener{ends: []int{1, 3, 4, 6}}
	for message, want := range []int{0, 1, 1, 2, 3, 3, 4} {
		if got := l.recordOf(message); got != want {
			t.Errorf("message %d is of record %d, want %d", message, got, want)
		}
	}
}
