package disk

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// idSize is the bytes of an id, which is twice as many characters.
const idSize = 8

// ID is the directory's own, which a file of the name has. It makes the directory and the id where they are missing.
// A copy of the directory has the same one.
func ID(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if id := strings.TrimSpace(string(text)); err == nil && len(id) == 2*idSize {
		return id, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := MakeDir(dir); err != nil {
		return "", err
	}
	var id [idSize]byte
	rand.Read(id[:]) // never fails
	made := hex.EncodeToString(id[:])
	return made, WriteWhole(path, path+".new", []byte(made+"\n"))
}

// WriteWhole makes a file of the parts, durably: it has all of them, or is as it was. Others cannot read it, nor the
// temporary one.
func WriteWhole(path, temporary string, parts ...[]byte) error {
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	for i := 0; err == nil && i < len(parts); i++ {
		_, err = f.Write(parts[i])
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // the next attempt writes it anew
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// MakeDir creates the directory and its missing parents, for their owner alone, and makes the names durable: what is
// synced into a directory which a power failure forgets is lost.
func MakeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); errors.Is(err, os.ErrExist) {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
	} else if err != nil {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the names in a directory durable, on file systems that can.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Creatable says why MakeDir could not create the directory, and creates nothing.
func Creatable(dir string) error {
	info, err := os.Stat(dir)
	switch parent := filepath.Dir(dir); {
	case errors.Is(err, os.ErrNotExist) && parent != dir:
		return Creatable(parent)
	case err != nil:
		return err
	case !info.IsDir():
		return &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return &os.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	return nil
}

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
