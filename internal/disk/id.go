package disk

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	if err := writeWhole(path, made+"\n"); err != nil {
		return "", err
	}
	return made, SyncDir(dir)
}

// writeWhole makes the file, durably: it has all of the text, or is not there.
func writeWhole(path, text string) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
