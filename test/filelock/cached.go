package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// keep is how long a program of another version stays in the cache after its last use. One weighs a hundred megabytes.
const keep = 7 * 24 * time.Hour

// Cached returns a program in the user's cache. The first test binary that asks for the version makes it, and others
// wait for that. It is made under a temporary name: what was cut short leaves nothing that looks finished.
func Cached(ctx context.Context, name, version string, build func(partial string) error) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "kubecdc")
		err = os.MkdirAll(cache, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("create cache for %s: %w", name, err)
	}
	path = filepath.Join(cache, name+"-"+version)
	if used(path) {
		return path, nil
	}
	unlock, err := Lock(ctx, filepath.Join(cache, name+".lock"))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if used(path) {
		return path, nil
	}
	if err := build(path + ".partial"); err != nil {
		return "", err
	}
	if err := os.Rename(path+".partial", path); err != nil {
		return "", fmt.Errorf("keep %s: %w", name, err)
	}
	others, _ := filepath.Glob(filepath.Join(cache, name+"-*"))
	for _, other := range others {
		if info, err := os.Stat(other); err == nil && time.Since(info.ModTime()) > keep {
			os.Remove(other)
		}
	}
	return path, nil
}

// used reports whether the file is there, and marks it as used.
func used(path string) bool {
	now := time.Now()
	return os.Chtimes(path, now, now) == nil
}
