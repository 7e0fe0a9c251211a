package disk

import (
	"errors"
	"fmt"
	"syscall"
)

// Usage is how full a volume is, in bytes. Some network file systems do not know; their Total is 0.
type Usage struct{ Free, Total uint64 }

// UsageOf is the usage of the volume that has the directory.
func UsageOf(dir string) (Usage, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return Usage{}, err
	}
	return Usage{Free: stat.Bavail * uint64(stat.Bsize), Total: stat.Blocks * uint64(stat.Bsize)}, nil
}

// Needs returns a *FullError where the volume has less free than that. The outlook says what happens when there is
// space again.
func (u Usage) Needs(bytes uint64, outlook string) error {
	if u.Total == 0 || u.Free >= bytes {
		return nil
	}
	return &FullError{Free: u.Free, Need: bytes, Outlook: outlook}
}

// FullError says that a volume has too little space left. Nothing was changed, and the same call works again when
// there is space.
type FullError struct {
	Free, Need uint64 // bytes
	Outlook    string
}

func (e *FullError) Error() string {
	return fmt.Sprintf("only %d MiB free, %d MiB needed: free space or enlarge the volume; nothing is lost, %s",
		e.Free>>20, e.Need>>20, e.Outlook)
}

// IsFull says whether a system call failed because a volume, or somebody's share of it, is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
