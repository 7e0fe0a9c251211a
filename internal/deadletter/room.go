package deadletter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// recount is how often the letters are counted again where they have reached their bound: somebody may have deleted
// some.
const recount = 10 * time.Second

// block is what a file system gives out, mostly; a letter's first line is less.
const block = 4 << 10

// onDisk is what a file of so many bytes takes, about.
func onDisk(bytes int64) int64 { return (bytes + block - 1) / block * block }

// room is how much of the bound is used. The zero value has counted nothing.
type room struct {
	used    int64
	counted time.Time
}

// fits says whether the letter has room, and counts it.
func (r *room) fits(o *Options, l *Letter) (bool, error) {
	if o.Bytes == 0 {
		return true, nil
	}
	size := onDisk(int64(len(l.Value)+len(l.Object)+len(l.Before)) + block/2)
	full := r.used+size > o.Bytes
	if r.counted.IsZero() || full && o.now().Sub(r.counted) >= recount {
		used, err := o.size()
		if err != nil {
			return false, err
		}
		*r = room{used: used, counted: o.now()}
	}
	if r.used+size > o.Bytes {
		return false, nil
	}
	r.used += size
	return true, nil
}

// size is what the letters take, in bytes.
func (o *Options) size() (all int64, err error) {
	for _, dir := range []string{o.Dir, filepath.Join(o.Dir, claimedName)} {
		names, err := letterNames(dir)
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			info, err := os.Stat(filepath.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue // sent again meanwhile
			}
			if err != nil {
				return 0, err
			}
			all += onDisk(info.Size())
		}
	}
	return all, nil
}

// minFree is how many bytes stay free on the volume: the saved state is mostly on the same one, and needs as much.
const minFree = 64 << 20

// checkSpace returns a *disk.FullError where the letter would not leave enough free.
func (o *Options) checkSpace(size int) error {
	usage, err := o.usage(o.Dir)
	if err != nil {
		return fmt.Errorf("read the volume's free space: %w", err)
	}
	return usage.Needs(o.floor+uint64(size), "the sink continues when there is space")
}
