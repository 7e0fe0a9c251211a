//go:build unix

// Package filelock keeps test binaries out of each other's way: what several of them need is made by one.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Lock waits for the file lock at path. The kernel releases it with the process,
// so that no killed test leaves it behind.
func Lock(ctx context.Context, path string) (unlock func() error, err error) {
	for {
		unlock, err := TryLock(path)
		if err != nil || unlock != nil {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock of %s: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TryLock returns nothing where another one has the lock.
func TryLock(path string) (unlock func() error, err error) {
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
