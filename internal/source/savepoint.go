package source

import "context"

// savePoint is a point after which all is delivered and saved at some time, while the watch goes on. The zero value is
// none.
type savePoint struct {
	stop  context.CancelFunc
	saved chan error // buffered 1; nil where nobody waits
}

// isSaved says whether all before the save point is saved, or there is none.
func (s *savePoint) isSaved() (bool, error) {
	if s.saved != nil && len(s.saved) == 0 {
		return false, nil
	}
	return true, s.wait()
}

// wait returns when all before the save point is saved.
func (s *savePoint) wait() error {
	if s.saved == nil {
		return nil
	}
	err := <-s.saved
	s.stop()
	s.saved = nil
	return err
}

// drop forgets the mark.
func (s *savePoint) drop() {
	if s.saved != nil {
		s.stop()
		_ = s.wait() // it was stopped
	}
}
