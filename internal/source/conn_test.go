package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/iotest"

	"k8s.io/client-go/rest"
)

// readerConn is a connection that reads from the reader, and notes how many bytes it is asked for.
type readerConn struct {
	net.Conn
	reader io.Reader
	before func()     // each Read; nil is nothing
	mu     sync.Mutex // guards the following
	asked  []int
}

func (c *readerConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.asked = append(c.asked, len(p))
	c.mu.Unlock()
	if c.before != nil {
		c.before()
	}
	return c.reader.Read(p)
}

func ahead(t *testing.T, conn net.Conn) net.Conn {
	t.Helper()
	config := &rest.Config{Dial: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}
	readAhead(config)
	made, err := config.Dial(t.Context(), "tcp", "")
	must(t, err)
	return made
}

// TestI4AConnectionThatIsReadAheadLosesNothing: whatever the pieces are that it comes in, and also where the end comes
// with the last of them.
func TestI4AConnectionThatIsReadAheadLosesNothing(t *testing.T) {
	content := make([]byte, 3*maxAhead+17)
	for i := range content {
		content[i] = byte(i % 251)
	}
	for name, pieces := range map[string]func(io.Reader) io.Reader{
		"all that is asked for": func(r io.Reader) io.Reader { return r },
		"halves":                iotest.HalfReader,
		"an end with bytes":     iotest.DataErrReader,
	} {
		if err := iotest.TestReader(ahead(t, &readerConn{reader: pieces(bytes.NewReader(content))}), content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	few := content[:3*minAhead]
	if err := iotest.TestReader(ahead(t, &readerConn{reader: iotest.OneByteReader(bytes.NewReader(few))}), few); err != nil {
		t.Error(err)
	}
}

// TestI6AConnectionIsReadFurtherWhileItFillsItsRoom: one that is quiet, or becomes so, is small; and no more is read
// before what is held is taken.
func TestI6AConnectionIsReadFurtherWhileItFillsItsRoom(t *testing.T) {
	bare := &readerConn{}
	conn := ahead(t, bare)
	bare.before = func() {
		if conn.(*aheadConn).held != nil {
			t.Error("a connection that is waited for keeps what was taken")
		}
	}
	for _, turn := range []struct {
		name string
		give int // bytes a read, at most
		want []int
	}{
		{"quiet", minAhead - 1, []int{minAhead, minAhead, minAhead}},
		{"busy", maxAhead, []int{8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 512 << 10}},
		{"slow", maxAhead / 32, []int{512 << 10, 512 << 10, 512 << 10}},
		{"quiet again", 100, []int{512 << 10, 256 << 10, 128 << 10, 64 << 10, 32 << 10, 16 << 10, 8 << 10, 8 << 10}},
	} {
		bare.reader, bare.asked = endlessReader{turn.give}, nil
		for _, size := range turn.want {
			p := make([]byte, min(size, turn.give))
			if _, err := io.ReadFull(conn, p[:1]); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(conn, p[1:]); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(bare.asked, turn.want) {
			t.Errorf("a connection that is %s was asked for %v bytes, want %v", turn.name, bare.asked, turn.want)
		}
	}
}

// endlessReader gives so many bytes at most.
type endlessReader struct{ most int }

func (r endlessReader) Read(p []byte) (int, error) { return min(len(p), r.most), nil }

// TestADeadlineIsNotTheEndOfAConnection: the bytes before it come first, and what comes later is read.
func TestADeadlineIsNotTheEndOfAConnection(t *testing.T) {
	conn := ahead(t, &readerConn{reader: iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader([]byte("ab"))))})
	p := make([]byte, 8)
	for i, want := range []string{"a", "", "b"} {
		n, err := conn.Read(p)
		if string(p[:n]) != want || (n == 0) != errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("read %d returns %q, %v", i, p[:n], err)
		}
	}
}
