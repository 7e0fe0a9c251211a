package deadletter

import (
	"time"

	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/disk"
)

// Options says whose letters a directory has.
type Options struct {
	Dir        string // of the sink alone; it is made with the first letter
	Sink       string
	Cluster    string // the name
	ClusterUID string // the uid of namespace kube-system
	// Bytes are what the letters may take on disk, about; 0 is no limit. Whoever may write objects decides how much is
	// rejected, and must not fill the volume of the saved state.
	Bytes int64
	// Form says by which rules the stream's objects are cut and redacted; nil is not known.
	Form func(*change.Stream) string
	// Changed is told the name of each file that was made, written or removed here, as Files has it, when that is
	// durable; nil is nobody.
	Changed func(name string)

	floor uint64 // bytes that stay free
	usage func(dir string) (disk.Usage, error)
	now   func() time.Time
}
