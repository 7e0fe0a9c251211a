package console

import (
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/control"
)

// TestAPositionThatIsNotCompleteIsExplainedWhereItIsShown, and nowhere else.
func TestAPositionThatIsNotCompleteIsExplainedWhereItIsShown(t *testing.T) {
	for complete, want := range map[bool]string{
		true: "pods    7                true      1        \n\n",
		false: "pods    7                false     1        \n" +
			"COMPLETE false: more changes of the same version may follow, so the watch goes on one version below. Nothing is wrong.\n\n",
	} {
		var b strings.Builder
		state := &control.State{Streams: map[string]control.StreamState{"pods": {ResourceVersion: "7", Complete: complete, Objects: 1}}}
		if err := PrintState(state, &b); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("complete %v: %v\n%s\nwant in it:\n%s", complete, err, b.String(), want)
		}
	}
}
