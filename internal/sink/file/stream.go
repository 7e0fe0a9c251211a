package file

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// streamMark is the mark of a sink that cannot look back.
const streamMark sink.Mark = "stdout"

// pipeChunk is PIPE_BUF: a pipe that poll calls writable takes as much without blocking.
const pipeChunk = 4096

// keepBuffer bounds what a rare giant batch leaves allocated.
const keepBuffer = 8 << 20

// pollTime is how soon a Write to a pipe that nobody reads notices the end of its context.
const pollTime = 100 * time.Millisecond

// Stream is the sink on standard output. It is as durable as what it is connected to: a regular file gets its fsync,
// a pipe has taken the bytes, a terminal has shown them. Nobody can read a pipe's past, so Open finds nothing, and a
// record whose checkpoint a crash prevented is written twice.
type Stream struct {
	attempts

	opened bool
	unsent []byte // of the last batch, when its Write failed within a line: the rest of that line
	buf    []byte
}

var _ sink.Sink = (*Stream)(nil)

// Open is sink.Sink's. It finds nothing.
func (s *Stream) Open(ctx context.Context, _ sink.Opening) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("open standard output: %w", err)
	}
	s.opened = true
	return nil
}

// Write is sink.Sink's. After an error it may have written a part of a line, which the next Write completes first.
func (s *Stream) Write(ctx context.Context, batch []sink.Message) (sink.Mark, error) {
	if !s.opened {
		return "", fmt.Errorf("write to standard output: it is not open: open the sink first")
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("write to standard output: %w", err)
	}
	s.buf = append(s.buf[:0], s.unsent...)
	for i := range batch {
		s.buf = appendLine(s.buf, batch[i].Value)
	}
	sent := 0
	err := s.run(ctx, "write to", func() error {
		n, err := s.put(ctx, s.buf[sent:])
		sent += n
		return err
	})
	s.unsent = append(s.unsent[:0], restOfLine(s.buf, sent, len(s.unsent) > 0)...)
	if cap(s.buf) > keepBuffer {
		s.buf = nil
	}
	if err != nil {
		return "", err
	}
	return streamMark, nil
}

// Close is sink.Sink's. Standard output itself stays open, it is the process's.
func (s *Stream) Close(context.Context) error {
	s.opened = false
	return nil
}

// restOfLine is what is missing of the line that was begun, in buf before sent or earlier.
func restOfLine(buf []byte, sent int, begun bool) []byte {
	if sent > 0 {
		begun = buf[sent-1] != '\n'
	}
	if !begun || sent == len(buf) {
		return nil
	}
	line, _, _ := bytes.Cut(buf[sent:], []byte("\n"))
	return buf[sent : sent+len(line)+1]
}

func (s *Stream) put(ctx context.Context, p []byte) (int, error) {
	f, ok := s.options.Stdout.(*os.File)
	if !ok {
		n, err := s.options.Stdout.Write(p)
		if err == nil && n < len(p) {
			err = io.ErrShortWrite
		}
		return n, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return putPipe(ctx, f, p)
	}
	n, err := f.Write(p)
	if err == nil {
		err = f.Sync()
	}
	return n, err
}

// putPipe writes to what may block for ever, and still ends with the context: it writes only what poll has seen room
// for. It bypasses os.File's Write, which ends the process with SIGPIPE when the reader of standard output is gone.
func putPipe(ctx context.Context, f *os.File, p []byte) (sent int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	for sent < len(p) && err == nil {
		if err = ctx.Err(); err != nil {
			break
		}
		var n int
		controlErr := conn.Control(func(fd uintptr) {
			n, err = putChunk(int(fd), p[sent:min(len(p), sent+pipeChunk)])
		})
		sent += n
		err = cmp.Or(err, controlErr)
	}
	return sent, err
}

func putChunk(fd int, p []byte) (int, error) {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	n, err := unix.Poll(ready, int(pollTime.Milliseconds()))
	if err == nil && n > 0 {
		n, err = unix.Write(fd, p)
	}
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		return 0, nil
	}
	return max(n, 0), err
}
