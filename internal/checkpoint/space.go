package checkpoint

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/kubecdc/kubecdc/internal/disk"
)

// space watches the free space of the volume. Pebble returns no error on a full disk: it waits, or ends the process.
// So a write is refused while Pebble would still have room for what it does in the background.
type space struct {
	dir    string
	floor  uint64 // bytes
	usage  func(path string) (vfs.DiskUsage, error)
	logger *slog.Logger
	stop   chan struct{} // closed: nobody waits for space any more
}

// pollSpace is how often a wait for space looks again.
const pollSpace = time.Second

// check returns a *disk.FullError where less than the floor is free.
func (s *space) check(op string) error {
	usage, err := s.usage(s.dir)
	if err != nil {
		return fmt.Errorf("%s state %s: read the volume's free space: %w", op, s.dir, err)
	}
	outlook := "saving continues when there is space"
	if op == "open" {
		outlook = "start again when there is space"
	}
	err = disk.Usage{Free: usage.AvailBytes, Total: usage.TotalBytes}.Needs(s.floor, outlook)
	if err != nil {
		return fmt.Errorf("%s state %s: %w", op, s.dir, err)
	}
	return nil
}

// wait is called when a write inside Pebble found the disk full, which means that somebody else filled it after check.
// Pebble repeats the write once when wait returns, and ends the process if that fails for its log.
func (s *space) wait() {
	if s.check("write") == nil {
		return
	}
	s.logger.Error("the disk is full, saving waits for space", "dir", s.dir)
	ticker := time.NewTicker(pollSpace)
	defer ticker.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-ticker.C:
			if s.check("write") == nil {
				s.logger.Info("the disk has space again, saving continues", "dir", s.dir)
				return
			}
		}
	}
}
