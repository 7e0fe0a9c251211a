package delivery

import "github.com/kubecdc/kubecdc/internal/change"

// trimming is how far the cuts of one record have come.
type trimming struct {
	original *change.Record // as it came
	next     int            // in Oversize.Trims
}
