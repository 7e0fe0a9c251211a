package source

import "github.com/kubecdc/kubecdc/internal/source/frame"

// tellListed tells of a page of n objects.
func (s *Stream) tellListed(n int, page *frame.ListMeta) {
	if s.Observer.Listed == nil {
		return
	}
	remaining := int64(-1)
	switch {
	case page.Continue == "":
		remaining = 0
	case page.RemainingItemCount != nil:
		remaining = *page.RemainingItemCount
	}
	s.Observer.Listed(s.stream, n, remaining)
}
