package source

import "github.com/kubecdc/kubecdc/internal/listener"

// IsApart says whether the sink is given the stream by a watch that is not the common one.
func (s *SharedInformer) IsApart(sink *listener.Intake) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, i := range s.informers {
		if at > 0 && i.alone == sink {
			return true
		}
	}
	return false
}
