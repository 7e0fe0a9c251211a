package requests

import (
	"context"
	"os"
	"strings"

	"github.com/kubecdc/kubecdc/internal/app/beside"
	"github.com/kubecdc/kubecdc/internal/control"
)

// AnswerHangups asks for a full snapshot of everything at each hangup, until the returned function is called, which
// waits for its goroutine.
func (h *Handler) AnswerHangups(ctx context.Context, hangups <-chan os.Signal) (stop func()) {
	return beside.Run(ctx, func(ctx context.Context) {
		for {
			select {
			case <-hangups:
				h.answerHangup(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

func (h *Handler) answerHangup(ctx context.Context) {
	snapshot, err := h.owe(ctx, control.SnapshotRequest{}, nil)
	if err != nil {
		h.Logger.Warn("SIGHUP requested a full snapshot, which could not start", "error", err)
		return
	}
	h.Logger.Info("SIGHUP requested a full snapshot", "resources", strings.Join(snapshot.Streams, ","), "sinks", strings.Join(snapshot.Sinks, ","))
}
