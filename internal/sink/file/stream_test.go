package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/sink"
	"github.com/kubecdc/kubecdc/test/sinktest"
)

func newTestStream(t *testing.T, to io.Writer) *Stream {
	t.Helper()
	s := New(Options{Path: Stdout, Stdout: to})
	stream := s.(*Stream)
	stream.firstWait = time.Millisecond
	if ids := openAt(t, stream, ""); len(ids) > 0 {
		t.Fatalf("Open: %q", ids)
	}
	return stream
}

func linesOf(batch []sink.Message) []byte {
	var all []byte
	for i := range batch {
		all = appendLine(all, batch[i].Value)
	}
	return all
}

func TestI3StdoutIsOneLineAMessage(t *testing.T) {
	var out bytes.Buffer
	s := newTestStream(t, &out)
	maker := sinktest.Maker{}
	batch := append(maker.Batch(5), maker.Tombstone())
	batch = append(batch, sink.Message{Value: []byte("{\n \"a\": 1\n}\n")})
	if mark, err := s.Write(t.Context(), batch); err != nil || mark == "" {
		t.Fatalf("Write: %q, %v", mark, err)
	}
	want := append(linesOf(batch[:5]), "{  \"a\": 1 } \n"...)
	if !bytes.Equal(out.Bytes(), want) {
		t.Fatalf("got %q, want %q", out.Bytes(), want)
	}
}

func TestI1StdoutIsARegularFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	must(t, err)
	defer f.Close()
	s := newTestStream(t, f)
	batch := batchOf(50)
	if _, err := s.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if got := read(t, f.Name()); !bytes.Equal(got, linesOf(batch)) {
		t.Fatalf("got %d bytes, want %d", len(got), len(linesOf(batch)))
	}
}

func TestI7StdoutThatNobodyReadsEndsWithTheContext(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	s := newTestStream(t, w)
	maker := sinktest.Maker{}
	lost, resent := maker.Batch(1000), maker.Batch(3)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Write(ctx, lost); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Write: %v, want the context's error", err)
	}
	read := make(chan []byte)
	go func() {
		content, _ := io.ReadAll(r)
		read <- content
	}()
	must(t, s.Close(t.Context()))
	openAt(t, s, streamMark)
	if _, err := s.Write(t.Context(), resent); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	content := <-read
	begun, ok := bytes.CutSuffix(content, linesOf(resent))
	if !ok || !bytes.HasPrefix(linesOf(lost), begun) || len(begun) > 0 && begun[len(begun)-1] != '\n' {
		t.Fatalf("the line that was begun was not ended: %.100q ... %.100q", begun, begun[max(0, len(begun)-100):])
	}
}

// slowly takes a few bytes at a time and fails in between.
type slowly struct {
	bytes.Buffer
	broken bool
}

func (s *slowly) Write(p []byte) (int, error) {
	if s.broken = !s.broken; s.broken {
		return 0, unix.EIO
	}
	n, _ := s.Buffer.Write(p[:min(len(p), 100)])
	return n, nil
}

func TestI3StdoutGoesOnWhereItFailed(t *testing.T) {
	var out slowly
	s := newTestStream(t, &out)
	s.options.Retry = func(string, error) {}
	batch := batchOf(3)
	if _, err := s.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), linesOf(batch)) {
		t.Fatalf("got %q", out.Bytes())
	}
}

func TestRestOfLine(t *testing.T) {
	const buf = "ab\ncd\n"
	for _, c := range []struct {
		sent  int
		begun bool
		want  string
	}{{0, false, ""}, {0, true, "ab\n"}, {1, false, "b\n"}, {1, true, "b\n"}, {2, true, "\n"}, {3, true, ""}, {4, false, "d\n"}, {6, false, ""}} {
		if got := restOfLine([]byte(buf), c.sent, c.begun); string(got) != c.want {
			t.Errorf("%d bytes sent, begun %t: got %q, want %q", c.sent, c.begun, got, c.want)
		}
	}
}

// childEnv makes the test binary the child of the test below.
const childEnv = "KUBECDC_FILE_TEST_CHILD"

// writeToBrokenPipe is that child. It must come to its error, and not die of SIGPIPE before.
func writeToBrokenPipe() error {
	s := New(Options{Path: Stdout})
	if _, err := sinktest.Open(context.Background(), s, ""); err != nil {
		return err
	}
	_, err := s.Write(context.Background(), batchOf(1))
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) {
		return fmt.Errorf("got %w, want a PermanentError", err)
	}
	fmt.Fprint(os.Stderr, err)
	return nil
}

func TestI4BrokenStdoutIsPermanent(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	_ = r.Close()
	var stderr bytes.Buffer
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childEnv+"=stdout")
	child.Stdout, child.Stderr = w, &stderr
	err = child.Run()
	_ = w.Close()
	const want = "write to standard output: broken pipe: restart the reader of the exporter's output, then the exporter"
	if err != nil || stderr.String() != want {
		t.Fatalf("%v: %q, want %q", err, stderr.String(), want)
	}
}
