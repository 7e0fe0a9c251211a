package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/kubecdc/kubecdc/internal/disk"
)

// lockDir makes this process the directory's owner until the file is closed or the process ends, however it ends (I10).
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, privateFile)
	if err != nil {
		return nil, prepareError(dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		pid := readPID(f)
		return nil, errors.Join(&InUseError{Dir: dir, PID: pid}, f.Close())
	}
	if err == nil {
		err = writePID(f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open state %s: lock %s: %w", dir, lockName, err), f.Close())
	}
	return f, nil
}

// Reserve makes the directory, if it is missing, and this process its owner until the closer is closed.
func Reserve(dir string) (io.Closer, error) {
	if err := disk.MakeDir(dir); err != nil {
		return nil, prepareError(dir, err)
	}
	return lockDir(dir)
}

// Owner is the process that has the state in the directory open, false where there is none. It makes nothing, and
// changes nothing. The process id is 0 where it is not known.
func Owner(dir string) (pid int, running bool, err error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, prepareError(dir, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return readPID(f), true, f.Close()
	}
	if err != nil {
		err = fmt.Errorf("open state %s: lock %s: %w", dir, lockName, err)
	}
	return 0, false, errors.Join(err, f.Close())
}

// readPID is the owner's process id, 0 where it has not written it yet.
func readPID(f *os.File) int {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}
