package file

import (
	"fmt"

	"github.com/kubecdc/kubecdc/internal/sink"
)

// InUseError says that another process writes to the file (I10).
type InUseError struct{ Path string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("open file %s: in use by another process: stop it, or give each its own file", e.Path)
}

func permanent(format string, args ...any) error {
	return &sink.PermanentError{Err: fmt.Errorf(format, args...)}
}
