package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// tailBytes is how much of the log a failure shows: some twenty lines.
const tailBytes = 4 << 10

// console is the terminal, kept apart from file descriptors 1 and 2: those take
// whatever klog, zap and the Go runtime print, and silence sends them to a file.
type console struct {
	out, err *os.File
	log      string // path of the log file; empty while the log goes to the terminal
	logStart int64  // size of the log file before this run
}

// silence sends the noise of all libraries to path. It swaps the descriptors
// rather than the loggers, because there are several loggers and none of them
// sees a crash.
func (c *console) silence(path string) error {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	if info, err := log.Stat(); err == nil {
		c.logStart = info.Size()
	}
	if c.out, err = redirect(os.Stdout, log); err != nil {
		return err
	}
	if c.err, err = redirect(os.Stderr, log); err != nil {
		return err
	}
	c.log = path
	return debug.SetCrashOutput(c.err, debug.CrashOptions{})
}

// redirect makes from's descriptor write to target and returns the old one.
func redirect(from, target *os.File) (*os.File, error) {
	kept, err := unix.FcntlInt(from.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", from.Name(), err)
	}
	if err := unix.Dup2(int(target.Fd()), int(from.Fd())); err != nil {
		return nil, fmt.Errorf("redirect %s: %w", from.Name(), err)
	}
	return os.NewFile(uintptr(kept), from.Name()), nil
}

// logTail is the end of what this run has logged out of sight, for the reader of
// an error message.
func (c *console) logTail() string {
	data, err := os.ReadFile(c.log)
	if c.log == "" || err != nil || int64(len(data)) <= c.logStart {
		return ""
	}
	tail := data[max(c.logStart, int64(len(data))-tailBytes):]
	if _, whole, ok := bytes.Cut(tail, []byte("\n")); ok && len(tail) == tailBytes {
		tail = whole
	}
	return fmt.Sprintf("last lines of %s:\n%s\n", filepath.Clean(c.log), strings.TrimRight(string(tail), "\n"))
}
