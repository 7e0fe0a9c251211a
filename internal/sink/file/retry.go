package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sys/unix"

	"github.com/kubecdc/kubecdc/internal/disk"
	"github.com/kubecdc/kubecdc/internal/sink"
)

// longestWait is how soon, at the latest, a disk that has room again is noticed.
const longestWait = 5 * time.Second

// attempts is how operations on one file are repeated.
type attempts struct {
	options   Options
	firstWait time.Duration // the pause before the first repetition
}

func (a attempts) run(ctx context.Context, verb string, operation func() error) error {
	var last error
	once := func() error {
		if last = operation(); last == nil || passes(last) {
			return last
		}
		return backoff.Permanent(last)
	}
	told := func(err error, _ time.Duration) { a.options.Retry(reason(err), err) }
	err := backoff.RetryNotify(once, backoff.WithContext(a.policy(), ctx), told)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(last, ctx.Err()):
		return fmt.Errorf("%s %s: %w", verb, a.options.noun(), last)
	case passes(last):
		return fmt.Errorf("%s %s: %w, after: %w", verb, a.options.noun(), ctx.Err(), last)
	}
	return a.explain(verb, err)
}

func (a attempts) policy() backoff.BackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(a.firstWait),
		backoff.WithMaxInterval(longestWait),
		backoff.WithMaxElapsedTime(0),
	)
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
	var classified *sink.PermanentError
	if errors.As(err, &classified) {
		return classified
	}
	return permanent("%s %s: %w: %s", verb, a.options.noun(), cause(err), advice(err))
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

func reason(err error) string {
	if disk.IsFull(err) {
		return "disk_full"
	}
	return "io_error"
}
