package deadletter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const (
	suffix = ".letter" // of a letter's file
	// claimedName is the directory of the letter that is on its way to the sink again, and of one that is being
	// written.
	claimedName = "claimed"
)

func letterNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), suffix) && !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
