package file

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/checkpoint/disk"
	"github.com/kubecdc/kubecdc/internal/scan"
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
		if err = f.Sync(); err != nil { // the next one would succeed, though what was written may be lost
			err = sink.Permanent("sync standard output: %w", err)
		}
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

// longestWait is how soon, at the latest, a disk that has room again is noticed.
const longestWait = 5 * time.Second

// attempts is how operations on one file are repeated.
type attempts struct {
	options   Options
	firstWait time.Duration // the pause before the first repetition
}

// run repeats the operation while what it fails of may pass, and ctx lives.
func (a attempts) run(ctx context.Context, verb string, operation func() error) error {
	var last error
	if ctx.Err() != nil {
		return sink.Ended(ctx, verb+" "+a.options.noun(), nil)
	}
	once := func() error {
		if last = operation(); last == nil || passes(last) {
			return last
		}
		return backoff.Permanent(last)
	}
	told := func(err error, _ time.Duration) {
		reason := "io_error"
		if disk.IsFull(err) {
			reason = "disk_full"
		}
		a.options.Retry(reason, err)
	}
	policy := backoff.NewExponentialBackOff(backoff.WithInitialInterval(a.firstWait), backoff.WithMaxInterval(longestWait), backoff.WithMaxElapsedTime(0))
	switch err := backoff.RetryNotify(once, backoff.WithContext(policy, ctx), told); {
	case err == nil:
		return nil
	case passes(last):
		return sink.Ended(ctx, verb+" "+a.options.noun(), last)
	}
	return a.explain(verb, last)
}

// advice is what a person can do about an error that does not pass by itself.
func advice(err error) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return "let the exporter's user read and write the file and its directory"
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return "create the directory"
	case errors.Is(err, unix.EISDIR):
		return "name a file in the directory"
	case errors.Is(err, unix.EROFS):
		return "mount the file system writable, or choose another path"
	case errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ELOOP):
		return "choose another path"
	case errors.Is(err, unix.EFBIG):
		return "set a size to rotate at, or raise the process's file size limit"
	case errors.Is(err, unix.EPIPE):
		return "restart the reader of the exporter's output, then the exporter"
	}
	return ""
}

// passes says whether an error may end without anybody's help. Unknown ones may: to stop for them loses more.
func passes(err error) bool {
	var classified *sink.PermanentError
	return !errors.As(err, &classified) && advice(err) == ""
}

// explain makes a PermanentError with an advice in it, if it is not one already.
func (a attempts) explain(verb string, err error) error {
	if classified, is := errors.AsType[*sink.PermanentError](err); is {
		return classified
	}
	return sink.Permanent("%s %s: %w: %s", verb, a.options.noun(), cause(err), advice(err))
}

// cause is the error without the path and the system call, which the message has already.
func cause(err error) error {
	var path *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// Stdout is the path that stands for standard output.
const Stdout = "-"

// Options configures a sink. Its zero value lacks a path.
type Options struct {
	// Path of the file that is appended to, or Stdout. Its directory must exist.
	Path string
	// MaxBytes is the size at which a new file is begun; a line that is longer has a file of its own. 0 is never.
	// "dir/changes.ndjson" is then renamed to "dir/changes-20261121T023314.123456789Z.ndjson".
	MaxBytes int64
	// Keep is how many renamed files are left, 0 for all. A file younger than a minute stays in any case, and so does
	// what lies after the saved mark (see sink.Keeper).
	Keep int
	// Stdout is written to if Path is Stdout; nil is os.Stdout.
	Stdout io.Writer
	// Retry, if set, is told of each attempt that is repeated: "disk_full", "io_error", and "retention" for a file that
	// could not be deleted and will be at the next rotation.
	Retry sink.RetryFunc
}

// noun is what errors call the sink's place.
func (o *Options) noun() string {
	if o.Path == Stdout {
		return "standard output"
	}
	return "file " + o.Path
}

// InUseError says that another process writes to the file (I10).
type InUseError struct{ Path string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("open file %s: in use by another process: stop it, or give each its own file", e.Path)
}

// appendLine appends a value as one line; a tombstone leaves none. JSON has no newline within a string, so one that is
// there stands between two tokens, where a space says the same.
func appendLine(dst, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	start := len(dst)
	dst = append(dst, value...)
	for rest := dst[start:]; ; {
		i := bytes.IndexByte(rest, '\n')
		if i < 0 {
			return append(dst, '\n')
		}
		rest[i] = ' '
		rest = rest[i+1:]
	}
}

// idOf is the string "id" on the top level of the line, or "" if it has none that kubecdc wrote.
func idOf(line []byte) (id string) {
	whole := scan.Members(line, func(name string, value []byte) {
		var text string
		if name != "id" || id != "" || json.Unmarshal(value, &text) != nil {
			return
		}
		if _, err := change.ParseID(text); err == nil {
			id = text
		}
	})
	if !whole {
		return ""
	}
	return id
}

// readLines gives the ids of the whole lines to found, and returns how many bytes these lines have.
func readLines(r io.Reader, found func(id string)) (length int64, err error) {
	err = eachLine(r, func(line []byte) error {
		if id := idOf(line); id != "" {
			found(id)
		}
		length += int64(len(line))
		return nil
	})
	return length, err
}

// eachLine hands on the whole lines, each with its newline. It ends without error before a line that has no newline, or
// a zero byte: file systems fill with those what a power failure took.
func eachLine(r io.Reader, each func(line []byte) error) error {
	b := bufio.NewReaderSize(r, 256<<10)
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF || err == nil && bytes.IndexByte(line, 0) >= 0:
			return nil
		case err != nil:
			return err
		}
		if err := each(line); err != nil {
			return err
		}
		line = line[:0]
	}
}
