package source

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/kubecdc/kubecdc/internal/change"
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

// countLine counts the records that are put in line.
type countLine struct{ n int }

func (c *countLine) Push(context.Context, *change.Record) error                    { c.n++; return nil }
func (*countLine) Drain(context.Context, change.Stream) error                      { return nil }
func (*countLine) Pace(context.Context, *change.Stream, string, int) (bool, error) { return false, nil }
func (*countLine) SinkOnly(change.Stream) []change.SinkOnly                        { return nil }

// BenchmarkDecoder is the way of a frame from the connection into the line.
func BenchmarkDecoder(b *testing.B) {
	for _, size := range []int{300, 1 << 10, 12 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) { decodeFrames(b, size) })
	}
}

func decodeFrames(b *testing.B, size int) {
	var text strings.Builder
	const frames = 500 // all of one length
	for i := range frames {
		fmt.Fprintf(&text, `{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"object-%04d","namespace":"default","uid":"%036d","resourceVersion":"%d"},"data":{"a":"%s"}}}`+"\n",
			i, i, 1000+i, strings.Repeat("x", max(0, size-200)))
	}
	line := &countLine{}
	d := newTestDecoder(b.Context(), io.LimitReader(&endless{text: []byte(text.String())}, int64(text.Len()/frames*b.N)), line)
	b.ReportAllocs()
	for err := error(nil); err == nil; {
		_, _, err = d.Decode()
	}
	if line.n < b.N*frames/(frames+1) { // the last version comes again at once, and is a replay
		b.Errorf("%d records are in line, want %d", line.n, b.N)
	}
}
