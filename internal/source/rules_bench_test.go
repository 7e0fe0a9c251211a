package source

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// heldLine is a line that has the last records in it, as queues have.
type heldLine struct {
	countLine
	held [4096]*change.Record
}

func (h *heldLine) Push(_ context.Context, rec *change.Record) error {
	h.held[h.n%len(h.held)] = rec
	h.n++
	return nil
}

// BenchmarkRules is the way of a frame from the connection into the line, with rules that make another object of each,
// where the frames' objects are lent to the rules and where they are copied first.
func BenchmarkRules(b *testing.B) {
	for name, lend := range map[string]bool{"lent": true, "copied": false} {
		b.Run(name, func(b *testing.B) { ruleFrames(b, lend) })
	}
}

func ruleFrames(b *testing.B, lend bool) {
	var text strings.Builder
	const frames = 500
	object := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"object-%04d","uid":"%036d","resourceVersion":"%d"},"data":{"a":"%s"}}`
	for i := range frames {
		fmt.Fprintf(&text, `{"type":"MODIFIED","object":`+object+"}\n", i, i, 1000+i, strings.Repeat("x", 5<<10))
	}
	body := io.LimitReader(&endless{text: []byte(text.String())}, int64(text.Len()/frames*b.N))
	d := newTestDecoder(b.Context(), body, &heldLine{})
	d.stream.Shape = func(rec *change.Record) { rec.Object = append(make([]byte, 0, len(rec.Object)), rec.Object...) }
	d.frames = frame.NewReader(body, frame.Options{Lend: lend})
	b.ReportAllocs()
	before := usedTime()
	for err := error(nil); err == nil; {
		_, _, err = d.Decode()
	}
	b.ReportMetric(float64(usedTime()-before)/float64(b.N), "cpu-ns/event") // on a busy machine it says more than the time
}

func usedTime() int64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage) // it can only fail for a bad argument
	return usage.Utime.Nano() + usage.Stime.Nano()
}
