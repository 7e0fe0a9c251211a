package shape

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
)

// TestWhatIsIgnoredIsThatAlone: an update is hidden only where nothing else differs, and never where that is not known.
func TestWhatIsIgnoredIsThatAlone(t *testing.T) {
	const node = `{"metadata":{"name":"a","resourceVersion":"%d","labels":{"x":%q}},"status":{"conditions":[{"lastHeartbeatTime":"%d","status":%q},{"lastHeartbeatTime":"1"}]}}`
	ignored, err := NewIgnored([]string{".status.conditions[*].lastHeartbeatTime"})
	if err != nil {
		t.Fatal(err)
	}
	before := fmt.Sprintf(node, 1, "x", 1, "True")
	for _, c := range []struct {
		name, before, after string
		want                bool
	}{
		{"a heartbeat", before, fmt.Sprintf(node, 2, "x", 2, "True"), true},
		{"nothing but the version", before, fmt.Sprintf(node, 2, "x", 1, "True"), true},
		{"a condition", before, fmt.Sprintf(node, 2, "x", 2, "False"), false},
		{"a label", before, fmt.Sprintf(node, 2, "y", 2, "True"), false},
		{"a number that a float64 cannot hold", `{"n":9007199254740993}`, `{"n":9007199254740992}`, false},
		{"managedFields", `{"metadata":{"managedFields":[{"time":"1"}],"resourceVersion":"1"}}`, `{"metadata":{"managedFields":[],"resourceVersion":"2"}}`, true},
		{"what is no JSON", before, before[:len(before)-1], false},
		{"what was no JSON", "", before, false},
		{"a deep one", strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000), strings.Repeat(`{"a":`, 9000) + "2" + strings.Repeat("}", 9000), false},
	} {
		rec := &change.Record{Op: change.Updated, Before: []byte(c.before), Object: []byte(c.after)}
		if got := ignored.Hide(rec); got != c.want {
			t.Errorf("%s: hidden %t, want %t", c.name, got, c.want)
		}
	}
}
