package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// window is how many bytes at the file's begin and before a place identify it.
const window = 4 << 10

var errNoPlace = errors.New("no file holds the place")

// place is a mark: so many bytes into the file that has these bytes there. It names no file, since a rotation renames
// it, and no inode, since file systems give those to the next file and a restored backup has others.
type place struct {
	Offset int64 `json:"offset"`
	// Sum is the CRC-32C of the file's begin and of what stands before the offset, in hex. Each line has an id or a
	// time that no other has.
	Sum string `json:"sum"`
	// After is the newest rotated file's name when the mark was made, "" if there was none. It finds the file of
	// offset 0, before which there is nothing to sum up.
	After string `json:"after,omitempty"`
}

func (p place) String() string { return fmt.Sprintf("byte %d (sum %s)", p.Offset, p.Sum) }

func parsePlace(saved sink.Mark) (place, bool) {
	var p place
	if err := json.Unmarshal([]byte(saved), &p); err != nil || p.Offset < 0 || p.Sum == "" {
		return place{}, false
	}
	return p, true
}

func sumAt(r io.ReaderAt, offset int64) (string, error) {
	n := min(offset, window)
	bytes := make([]byte, n)
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := uint32(0)
	for _, start := range [...]int64{0, offset - n} {
		if _, err := r.ReadAt(bytes, start); err != nil {
			return "", err
		}
		sum = crc32.Update(sum, table, bytes)
	}
	return fmt.Sprintf("%08x", sum), nil
}

// start is where reading back begins.
type start struct {
	file   int // index into the rotated files; their number stands for the active file
	offset int64
}

func holds(r io.ReaderAt, p place) (bool, error) {
	sum, err := sumAt(r, p.Offset)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil && sum == p.Sum, err
}
