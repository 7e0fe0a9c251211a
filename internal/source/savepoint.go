package source

import "context"

// savePoint is a point after which all is delivered and saved at some time, while the watch goes on. The zero value is
// none.
type savePoint struct {
	stop  context.CancelFunc
	saved chan error // buffered 1; nil where nobody waits
}

// isSaved says whether all before the save point is saved, or there is none.
func (m *savePoint) isSaved() (bool, error) {
	if m.saved != nil && len(m.saved) == 0 {
		return false, nil
	}
	return true, m.wait()
}

// wait returns when all before the save point is saved.
func (m *savePoint) wait() error {
	if m.saved == nil {
		return nil
	}
	err := <-m.saved
	m.stop()
	m.saved = nil
	return err
}

// drop forgets the mark.
func (m *savePoint) drop() {
	if m.saved != nil {
		m.stop()
		_ = m.wait() // it was stopped
	}
}
