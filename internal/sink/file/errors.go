package file

import "fmt"

// InUseError says that another process writes to the file (I10).
type InUseError struct{ Path string }

func (e *InUseError) Error() string {
	return fmt.Sprintf("open file %s: in use by another process: stop it, or give each its own file", e.Path)
}
