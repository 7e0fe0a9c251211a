//go:build unix

package connect

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// nobody is a user that owns nothing else.
const nobody = 65534

// asOther lets the commands run as another user than root, which PostgreSQL refuses, and the directory be that user's.
func asOther(dir string, commands ...*exec.Cmd) error {
	if os.Getuid() != 0 {
		return nil
	}
	for _, cmd := range commands {
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
}
