//go:build unix

package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock waits for the file lock at path. The kernel releases it with the process,
// so that no killed test leaves it behind.
func lock(ctx context.Context, path string) (unlock func() error, err error) {
	for {
		unlock, err := tryLock(path)
		if err != nil || unlock != nil {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another installation of Kafka: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tryLock returns nothing where another one has the lock.
func tryLock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f.Close, nil
	case errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR):
		return nil, f.Close()
	}
	return nil, fmt.Errorf("lock %s: %w", path, errors.Join(err, f.Close()))
}
