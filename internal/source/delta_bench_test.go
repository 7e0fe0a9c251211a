package source

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/source/frame"
)

// endless repeats the text, in the pieces of a TLS connection.
type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), 16<<10)], e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func (e *endless) Close() error { return nil }

// countLine counts the records that are put in line.
type countLine struct{ n int }

func (c *countLine) Push(context.Context, *change.Record) error { c.n++; return nil }
func (*countLine) Drain(context.Context, change.Stream) error   { return nil }
func (*countLine) Ghosts(change.Stream) []change.Ghost          { return nil }

// BenchmarkHandOver is the way of a frame from the connection through the Reflector's channel into the line.
func BenchmarkHandOver(b *testing.B) {
	for _, size := range []int{300, 1 << 10, 12 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { handOver(b, size) })
	}
}

func handOver(b *testing.B, size int) {
	var text strings.Builder
	for i := range 500 {
		fmt.Fprintf(&text, `{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"object-%04d","namespace":"default","uid":"%036d","resourceVersion":"%d"},"data":{"a":"%s"}}}`+"\n",
			i, i, 1000+i, strings.Repeat("x", max(0, size-200)))
	}
	line := &countLine{}
	s := NewStream(Config{Observer: NopObserver(), Saved: change.Position{ResourceVersion: "1", Complete: true, Epoch: "e"}, ClusterUID: "e"})
	s.line = line
	body := io.ReadCloser(&endless{text: []byte(text.String())})
	d := &decoder{stream: s, body: body, frames: frame.NewReader(body, frame.Options{}), ended: func(int) {}}
	reporter := apierrors.NewClientErrorReporter(500, "GET", "ClientWatchDecoding")
	w := watch.NewStreamWatcherWithLogger(klog.Background(), &observedDecoder{d, b.Context(), s}, reporter)
	defer w.Stop()
	store := deltaStore{b.Context(), s}
	b.ReportAllocs()
	for line.n < b.N {
		event := <-w.ResultChan()
		if err := store.Update(event.Object); err != nil {
			b.Fatal(err)
		}
	}
}
