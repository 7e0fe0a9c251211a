package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubecdc/kubecdc/internal/audit"
)

// TestARequestWhoseEndNobodyToldIsMissing, once, half an hour after its begin was told, and no other one is: none whose
// end comes first, as batches do, none that reads, and none that may last.
func TestARequestWhoseEndNobodyToldIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var missing []string
		in := newIntake(t.Context(), Config{Observer: Observer{Event: func(string) {}, Missing: func(id string) { missing = append(missing, id) }}}, &pushed{})
		tell := func(id, stage, verb, subresource string) {
			in.read(fmt.Appendf(nil, `{"auditID":%q,"stage":%q,"verb":%q,"objectRef":{"resource":"pods","name":"a","subresource":%q}}`, id, stage, verb, subresource), nil)
		}
		const begin, end = "RequestReceived", "ResponseComplete"
		tell("lost", begin, "patch", "")
		tell("ended", begin, "patch", "status")
		tell("ended", end, "patch", "status")
		tell("before", end, "update", "")
		tell("before", begin, "update", "")
		tell("panicked", begin, "create", "")
		tell("panicked", "Panic", "create", "")
		tell("read", begin, "get", "")
		tell("shell", begin, "create", "exec")
		tell(strings.Repeat("l", 1000), begin, "delete", "")
		time.Sleep(patience)
		tell("at-last", end, "update", "")
		if len(missing) > 0 {
			t.Errorf("%q are missing too early", missing)
		}
		time.Sleep(time.Second)
		tell("ended", end, "patch", "status")
		tell("later", end, "update", "")
		if want := []string{"lost", strings.Repeat("l", 64)}; !slices.Equal(missing, want) {
			t.Errorf("%q are missing, want %q", missing, want)
		}
	})
}

// TestI6RequestsThatAreWaitedForAreBounded: of more, the oldest are not told.
func TestI6RequestsThatAreWaitedForAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnfinished(2)
		for i := range 5 {
			u.take(&audit.Event{ID: fmt.Sprint(i), Verb: "create", Stage: "RequestReceived"})
		}
		time.Sleep(2 * patience)
		if got := u.take(&audit.Event{Verb: "get"}); !slices.Equal(got, []string{"3", "4"}) || u.known.Len() > 0 {
			t.Errorf("%q are missing, and %v is left", got, u.known.Keys())
		}
	})
}
