package webhook

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sync/semaphore"
)

const listHead = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`

func framed(t *testing.T, from io.Reader) (events []string, err error) {
	t.Helper()
	err = newFramer(from, semaphore.NewWeighted(1)).each(t.Context(), func(event []byte) error {
		events = append(events, string(event))
		return nil
	})
	return events, err
}

func TestEventsAreFoundInPiecesOfAnyLength(t *testing.T) {
	text := listHead + ` {"a":"}]{\"\\"} , {"b":{"c":[1,{}]}}` + "\n]}\n"
	for name, from := range map[string]io.Reader{
		"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
	} {
		events, err := framed(t, from)
		if err != nil || len(events) != 2 || events[0] != `{"a":"}]{\"\\"}` || events[1] != `{"b":{"c":[1,{}]}}` {
			t.Errorf("%s: %q, %v", name, events, err)
		}
	}
}

// I6: one event that is too large takes no other with it.
func TestI6AnEventThatIsTooLargeIsPassedOver(t *testing.T) {
	var text bytes.Buffer
	text.WriteString(listHead + `{"first":1},{"x":"`)
	text.Write(bytes.Repeat([]byte("<"), maxEvent))
	text.WriteString(`"},{"last":1}]}`)
	events, err := framed(t, &text)
	if err != nil || len(events) != 3 || events[0] != `{"first":1}` || events[1] != "" || events[2] != `{"last":1}` {
		t.Errorf("%d events, %v", len(events), err)
	}
}

func TestWhatIsNoListIsRefused(t *testing.T) {
	for _, text := range []string{
		`[]`, `{}`, `{"kind":"EventList","apiVersion":"audit.k8s.io/v1beta1","items":[]}`, `{"kind":"PodList","apiVersion":"v1","items":[]}`,
		listHead + `1]}`, listHead + `{} {}]}`, listHead + `,{}]}`, listHead + `{}]`, listHead + `{},]}`, strings.Repeat(" ", 2*maxHead),
	} {
		if _, err := framed(t, strings.NewReader(text)); !errors.Is(err, errForm) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}
