package selection

import (
	"github.com/kubecdc/kubecdc/internal/change"
	"github.com/kubecdc/kubecdc/internal/pipeline"
	"github.com/kubecdc/kubecdc/internal/source"
)

// SourceOf makes the informer the pipeline's source of the stream.
func SourceOf(stream change.Stream, informer *source.SharedInformer) pipeline.Source {
	return pipeline.Source{
		Stream: stream, Run: informer.Run, Join: informer.Join, Ask: informer.Ask, Withdraw: informer.Withdraw, IsApart: informer.IsApart,
	}
}
