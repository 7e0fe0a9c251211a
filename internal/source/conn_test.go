package source

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptest"
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
	mu     sync.Mutex // guards the following
	asked  []int
}

func (c *readerConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.asked = append(c.asked, len(p))
	c.mu.Unlock()
	return c.reader.Read(p)
}

func readAhead(t *testing.T, conn net.Conn) net.Conn {
	t.Helper()
	dial := aheadDialer(func(context.Context, string, string) (net.Conn, error) { return conn, nil })
	ahead, err := dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	return ahead
}

// TestI4AConnectionThatIsReadAheadLosesNothing: whatever the pieces are that it comes in, and also where the end comes with
// the last of them.
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
		if err := iotest.TestReader(readAhead(t, &readerConn{reader: pieces(bytes.NewReader(content))}), content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	few := content[:3*minAhead]
	if err := iotest.TestReader(readAhead(t, &readerConn{reader: iotest.OneByteReader(bytes.NewReader(few))}), few); err != nil {
		t.Error(err)
	}
}

// TestAConnectionIsReadFurtherWhileItFillsItsRoom: a quiet one stays small, and no more is read before what is held is taken.
func TestAConnectionIsReadFurtherWhileItFillsItsRoom(t *testing.T) {
	endless := &readerConn{reader: endlessReader{}}
	conn := readAhead(t, endless)
	for range 4 * maxAhead / 1000 {
		if n, err := conn.Read(make([]byte, 1000)); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	var want []int
	for size, sum := minAhead, 0; sum < 4*maxAhead/1000*1000; size = min(2*size, maxAhead) {
		want, sum = append(want, size), sum+size
	}
	if !slices.Equal(endless.asked, want) {
		t.Errorf("a busy connection was asked for %v bytes, want %v", endless.asked, want)
	}
	quiet := &readerConn{reader: endlessReader{short: 1}}
	for conn = readAhead(t, quiet); len(quiet.asked) < 8; {
		if _, err := conn.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if slices.Max(quiet.asked) != minAhead {
		t.Errorf("a quiet connection was asked for %v bytes", quiet.asked)
	}
}

// endlessReader gives so many bytes less than it is asked for.
type endlessReader struct{ short int }

func (r endlessReader) Read(p []byte) (int, error) { return len(p) - r.short, nil }

// TestADeadlineIsNotTheEndOfAConnection: the bytes before it come first, and what comes later is read.
func TestADeadlineIsNotTheEndOfAConnection(t *testing.T) {
	conn := readAhead(t, &readerConn{reader: iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader([]byte("ab"))))})
	p := make([]byte, 8)
	for i, want := range []string{"a", "", "b"} {
		n, err := conn.Read(p)
		if string(p[:n]) != want || (n == 0) != errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("read %d returns %q, %v", i, p[:n], err)
		}
	}
}

// TestTheClientsConnectionsAreReadAhead, and are opened as the configuration says.
func TestTheClientsConnectionsAreReadAhead(t *testing.T) {
	server := httptest.NewServer(&apiServer{t: t})
	defer server.Close()
	var opened readerConn
	client, err := NewClient(&rest.Config{Host: server.URL, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		opened.Conn, opened.reader = conn, conn
		return &opened, err
	}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if uid, err := client.clusterUID(t.Context()); uid != "epoch-1" {
		t.Fatal(uid, err)
	}
	opened.Close()
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if len(opened.asked) == 0 || opened.asked[0] != minAhead {
		t.Errorf("the connection was asked for %v bytes, want %d", opened.asked, minAhead)
	}
	refused := errors.New("nobody listens")
	dial := aheadDialer(func(context.Context, string, string) (net.Conn, error) { return nil, refused })
	if conn, err := dial(t.Context(), "tcp", ""); conn != nil || !errors.Is(err, refused) {
		t.Errorf("a connection that is refused is %v, %v", conn, err)
	}
}
